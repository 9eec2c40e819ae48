/* MPI_Alltoall as MPI_Alltoallv (GL8). */
#include "mock_ups.h"

void collwise_alltoall_gl8_alltoallv(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_counts blocks = collwise_equal_counts(block_bytes, comm);
    (void)with;
    PMPI_Alltoallv(send, blocks.counts, blocks.displacements, MPI_BYTE, receive, blocks.counts, blocks.displacements,
                   MPI_BYTE, comm);
}
