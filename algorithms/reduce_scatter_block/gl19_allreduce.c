/* MPI_Reduce_scatter_block as MPI_Allreduce (GL19): every process needs room for all blocks, and takes its own. */
#include "mock_ups.h"

void collwise_reduce_scatter_block_gl19_allreduce(const char *own, char *result, size_t elements,
                                                  const collwise_operation *op, MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm), bytes = elements * op->element_bytes;
    char *all = collwise_message_memory(procs * bytes, comm);
    collwise_mpi_allreduce(own, all, procs * elements, op, comm);
    collwise_copy(result, all + (size_t)collwise_rank_in(comm) * bytes, bytes);
}
