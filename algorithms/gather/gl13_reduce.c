/* MPI_Gather as MPI_Reduce (GL13): the bit-wise or of vectors that are zero outside of each process's block. */
#include "mock_ups.h"

void collwise_gather_gl13_reduce(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    size_t bytes = (size_t)collwise_size_of(comm) * block_bytes;
    collwise_operation bitwise_or = collwise_bitwise_or(comm);
    char *vector = collwise_message_memory(bytes, comm);
    (void)with;
    collwise_clear(vector, bytes);
    collwise_copy(vector + (size_t)collwise_rank_in(comm) * block_bytes, mine, block_bytes);
    collwise_mpi_reduce(vector, all, bytes, &bitwise_or, root, comm);
}
