/* Reports go up a binomial tree, then the release comes down:
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
    /* The widest subtree has the longest way to go. */
    for (int child = tree.child_count - 1; child >= 0; child--) {
        collwise_signal(collwise_tree_child(&tree, child), comm);
    }
}
