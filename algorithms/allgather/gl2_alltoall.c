/* MPI_Allgather as MPI_Alltoall (GL2): each process sends P copies of its block. */
#include "mock_ups.h"

void collwise_allgather_gl2_alltoall(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    int procs = collwise_size_of(comm), bytes = (int)block_bytes;
    const char *own = all + (size_t)collwise_rank_in(comm) * block_bytes;
    char *copies = collwise_message_memory((size_t)procs * block_bytes, comm);
    (void)with;
    for (int i = 0; i < procs; i++) {
        collwise_copy(copies + (size_t)i * block_bytes, own, block_bytes);
    }
    PMPI_Alltoall(copies, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm);
}
