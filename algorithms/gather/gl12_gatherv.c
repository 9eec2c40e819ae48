/* MPI_Gather as MPI_Gatherv (GL12). */
#include "mock_ups.h"

void collwise_gather_gl12_gatherv(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                  collwise_parameters with) {
    int at_root = collwise_rank_in(comm) == root;
    collwise_counts blocks = {NULL, NULL};
    (void)with;
    if (at_root) {
        blocks = collwise_equal_counts(block_bytes, comm);
    }
    PMPI_Gatherv(at_root ? MPI_IN_PLACE : mine, (int)block_bytes, MPI_BYTE, all, blocks.counts, blocks.displacements,
                 MPI_BYTE, root, comm);
}
