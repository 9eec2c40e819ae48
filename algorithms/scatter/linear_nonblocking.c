/* Scatter down a linear (flat) tree, in which all other processes are children of the root: it starts the sends to all
 * of them at once:
 *     T = alpha + (P - 1) m beta */
#include "internal.h"

void collwise_scatter_linear_nonblocking(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                         collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_receive(mine, block_bytes, root, comm);
        return;
    }
    collwise_requests sends = collwise_requests_make(tree.procs - 1, comm);
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_start_send(&sends, all + (size_t)rank * block_bytes, block_bytes, rank);
        }
    }
    collwise_wait(&sends);
    collwise_requests_free(&sends);
}
