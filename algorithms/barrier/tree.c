/* Barrier over an in-order binomial tree with process 0 as root: a process that has signals from all its children
 * signals its parent, waits for the parent's signal, and signals its children:
 *
 *     children of rank r:  r + 2^k for each 2^k below r's lowest bit (process 0: for each 2^k), if below P; smallest k
 *                          first on the way up, largest k first on the way down
 *     parent of rank r:    r without its lowest bit
 *
 *     T = 2 ceil(log2 P) alpha */
#include "internal.h"

void collwise_barrier_tree(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, 0, comm, 0);
    for (int child = 0; child < tree.child_count; child++) {
        collwise_await(collwise_tree_child(&tree, child), comm);
    }
    if (tree.parent >= 0) {
        collwise_signal(tree.parent, comm);
        collwise_await(tree.parent, comm);
    }
    /* The largest subtree takes longest. */
    for (int child = tree.child_count - 1; child >= 0; child--) {
        collwise_signal(collwise_tree_child(&tree, child), comm);
    }
}
