/* MPI_Reduce as MPI_Reduce_scatter and MPI_Gatherv (GL16). Chunks of C elements are dealt to the processes, so that
 * each has a part of whole chunks. */
#include "mock_ups.h"

void collwise_reduce_gl16_reduce_scatter_gatherv(const char *data, char *result, size_t elements,
                                                 const collwise_operation *op, int root, MPI_Comm comm,
                                                 collwise_parameters with) {
    collwise_counts parts = collwise_chunk_counts(elements, op->element_bytes, comm);
    char *part = collwise_message_memory(collwise_max_chunk_bytes(elements, op->element_bytes, comm), comm);
    (void)with;
    collwise_mpi_reduce_scatter(data, part, parts.counts, op, comm);
    collwise_counts_in_bytes(&parts, op->element_bytes, comm);
    PMPI_Gatherv(part, parts.counts[collwise_rank_in(comm)], MPI_BYTE, result, parts.counts, parts.displacements,
                 MPI_BYTE, root, comm);
}
