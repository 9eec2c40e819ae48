/* MPI_Scatter as MPI_Scatterv (GL22). */
#include "mock_ups.h"

void collwise_scatter_gl22_scatterv(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                    collwise_parameters with) {
    int at_root = collwise_rank_in(comm) == root;
    collwise_counts blocks = {NULL, NULL};
    (void)with;
    if (at_root) {
        blocks = collwise_equal_counts(block_bytes, comm);
    }
    PMPI_Scatterv(all, blocks.counts, blocks.displacements, MPI_BYTE, at_root ? MPI_IN_PLACE : mine, (int)block_bytes,
                  MPI_BYTE, root, comm);
}
