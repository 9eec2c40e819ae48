/* MPI_Bcast as MPI_Allgatherv (GL9): only the root has a block. */
#include "mock_ups.h"

void collwise_bcast_gl9_allgatherv(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_counts blocks = collwise_equal_counts(0, comm);
    (void)with;
    blocks.counts[root] = (int)bytes;
    PMPI_Allgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data, blocks.counts, blocks.displacements, MPI_BYTE, comm);
}
