/* The root receives from one process after another, formula (12):
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_gather_linear(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                            collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_send(mine, block_bytes, root, comm);
        return;
    }
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_receive(all + (size_t)rank * block_bytes, block_bytes, rank, comm);
        }
    }
}
