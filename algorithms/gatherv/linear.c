/* Gather up a linear (flat) tree, in which all other processes are children of the root: it receives from one after
 * another. With m for the sum of all blocks but its own:
 *     T = (P - 1) alpha + m beta */
#include "internal.h"

void collwise_gatherv_linear(const char *mine, size_t my_bytes, char *all, const size_t *offsets, int root,
                             MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_send(mine, my_bytes, root, comm);
        return;
    }
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_receive(all + offsets[rank], offsets[rank + 1] - offsets[rank], rank, comm);
        }
    }
}
