/* MPI_Reduce as MPI_Reduce_scatter_block and MPI_Gather (GL15), of a vector that is padded to P equal blocks. */
#include "mock_ups.h"

void collwise_reduce_gl15_reduce_scatter_block_gather(const char *data, char *result, size_t elements,
                                                      const collwise_operation *op, int root, MPI_Comm comm,
                                                      collwise_parameters with) {
    collwise_padded padded = collwise_padded_of(elements, op->element_bytes, comm);
    int bytes = (int)padded.block_bytes;
    (void)with;
    collwise_pad(&padded, data);
    collwise_mpi_reduce_scatter_block(padded.all, padded.block, padded.block_bytes / op->element_bytes, op, comm);
    PMPI_Gather(padded.block, bytes, MPI_BYTE, padded.all, bytes, MPI_BYTE, root, comm);
    if (collwise_rank_in(comm) == root) {
        collwise_copy(result, padded.all, elements * op->element_bytes);
    }
}
