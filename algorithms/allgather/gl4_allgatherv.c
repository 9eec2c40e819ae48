/* MPI_Allgather as MPI_Allgatherv (GL4). */
#include "mock_ups.h"

void collwise_allgather_gl4_allgatherv(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_counts blocks = collwise_equal_counts(block_bytes, comm);
    (void)with;
    PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all, blocks.counts, blocks.displacements, MPI_BYTE, comm);
}
