/* MPI_Gather as MPI_Allgather (GL11): all but the root need room for what the root receives. */
#include "mock_ups.h"

void collwise_gather_gl11_allgather(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                    collwise_parameters with) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    (void)with;
    if (rank != root) {
        all = collwise_message_memory((size_t)procs * block_bytes, comm);
        collwise_copy(all + (size_t)rank * block_bytes, mine, block_bytes);
    }
    PMPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int)block_bytes, MPI_BYTE, comm);
}
