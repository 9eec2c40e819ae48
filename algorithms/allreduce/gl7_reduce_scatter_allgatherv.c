/* MPI_Allreduce as MPI_Reduce_scatter and MPI_Allgatherv (GL7), in the receive buffer. Chunks of C elements are dealt
 * to the processes, so that each has a part of whole chunks. */
#include "mock_ups.h"

void collwise_allreduce_gl7_reduce_scatter_allgatherv(const char *own, char *result, size_t elements,
                                                      const collwise_operation *op, MPI_Comm comm) {
    int rank = collwise_rank_in(comm);
    collwise_counts parts = collwise_chunk_counts(elements, op->element_bytes, comm);
    char *part = result + (size_t)parts.displacements[rank] * op->element_bytes;
    /* In place, MPI puts each process's part at the start. */
    char *received = own == result ? result : part;
    collwise_mpi_reduce_scatter(own, received, parts.counts, op, comm);
    collwise_counts_in_bytes(&parts, op->element_bytes, comm);
    collwise_copy(part, received, own == result ? (size_t)parts.counts[rank] : 0);
    PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, result, parts.counts, parts.displacements, MPI_BYTE, comm);
}
