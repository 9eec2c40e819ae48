/* Barrier over two levels: signals up an in-order binomial tree to the leader of each node, a dissemination barrier of
 * the leaders (barrier/bruck.c), and signals down the same trees (barrier/tree.c). */
#include "internal.h"

void collwise_barrier_hierarchical(MPI_Comm comm, collwise_parameters with) {
    collwise_two_levels tree = collwise_two_levels_of(COLLWISE_FLAT, COLLWISE_IN_ORDER_BINOMIAL, 0, comm);
    const collwise_tree *within = &tree.within;
    MPI_Comm node = tree.levels.node;
    for (int child = 0; child < within->child_count; child++) {
        collwise_await(collwise_tree_child(within, child), node);
    }
    if (tree.levels.is_leader) {
        collwise_barrier_bruck(tree.levels.between, with);
    } else {
        collwise_signal(within->parent, node);
        collwise_await(within->parent, node);
    }
    for (int child = within->child_count - 1; child >= 0; child--) {
        collwise_signal(collwise_tree_child(within, child), node);
    }
}
