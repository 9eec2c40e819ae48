/* MPI_Allreduce as MPI_Reduce_scatter_block and MPI_Allgather (GL6), of a vector that is padded to P equal blocks. */
#include "mock_ups.h"

void collwise_allreduce_gl6_reduce_scatter_block_allgather(const char *own, char *result, size_t elements,
                                                           const collwise_operation *op, MPI_Comm comm) {
    collwise_padded padded = collwise_padded_of(elements, op->element_bytes, comm);
    int bytes = (int)padded.block_bytes;
    collwise_pad(&padded, own);
    collwise_mpi_reduce_scatter_block(padded.all, padded.block, padded.block_bytes / op->element_bytes, op, comm);
    PMPI_Allgather(padded.block, bytes, MPI_BYTE, padded.all, bytes, MPI_BYTE, comm);
    collwise_copy(result, padded.all, elements * op->element_bytes);
}
