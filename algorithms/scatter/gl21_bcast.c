/* MPI_Scatter as MPI_Bcast (GL21): all but the root need room for what the root sends, and take their own blocks. */
#include "mock_ups.h"

void collwise_scatter_gl21_bcast(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    (void)with;
    if (rank == root) {
        PMPI_Bcast((char *)all, procs * (int)block_bytes, MPI_BYTE, root, comm);
    } else {
        char *received = collwise_message_memory((size_t)procs * block_bytes, comm);
        PMPI_Bcast(received, procs * (int)block_bytes, MPI_BYTE, root, comm);
        collwise_copy(mine, received + (size_t)rank * block_bytes, block_bytes);
    }
}
