/* MPI_Allgather as MPI_Allreduce (GL3): the bit-wise or of vectors that are zero outside of each process's block. */
#include "mock_ups.h"

void collwise_allgather_gl3_allreduce(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    size_t bytes = (size_t)collwise_size_of(comm) * block_bytes, own = (size_t)collwise_rank_in(comm) * block_bytes;
    collwise_operation bitwise_or = collwise_bitwise_or(comm);
    char *vector = collwise_message_memory(bytes, comm);
    (void)with;
    collwise_clear(vector, bytes);
    collwise_copy(vector + own, all + own, block_bytes);
    collwise_mpi_allreduce(vector, all, bytes, &bitwise_or, comm);
}
