/* Broadcast down a linear (flat) tree, in which all other processes are children of the root: it sends the whole
 * message to one after another, with blocking sends. Formula (1):
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_bcast_linear(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_receive(data, bytes, root, comm);
    }
    for (int child = 0; child < tree.child_count; child++) {
        collwise_send(data, bytes, collwise_tree_child(&tree, child), comm);
    }
}
