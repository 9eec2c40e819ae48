/* Scatter down a linear (flat) tree, in which all other processes are children of the root: it sends to one after
 * another, with blocking sends. With m for the sum of all blocks but its own:
 *     T = (P - 1) alpha + m beta */
#include "internal.h"

void collwise_scatterv_linear(const char *all, const size_t *offsets, char *mine, size_t my_bytes, int root,
                              MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_receive(mine, my_bytes, root, comm);
        return;
    }
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_send(all + offsets[rank], offsets[rank + 1] - offsets[rank], rank, comm);
        }
    }
}
