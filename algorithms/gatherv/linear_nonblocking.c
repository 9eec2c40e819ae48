/* Gather up a linear (flat) tree, in which all other processes are children of the root: it starts the receives from
 * all of them at once. With m for the sum of all blocks but its own:
 *     T = alpha + m beta */
#include "internal.h"

void collwise_gatherv_linear_nonblocking(const char *mine, size_t my_bytes, char *all, const size_t *offsets, int root,
                                         MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_send(mine, my_bytes, root, comm);
        return;
    }
    collwise_requests receives = collwise_requests_make(tree.procs - 1, comm);
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_start_receive(&receives, all + offsets[rank], offsets[rank + 1] - offsets[rank], rank);
        }
    }
    collwise_wait(&receives);
    collwise_requests_free(&receives);
}
