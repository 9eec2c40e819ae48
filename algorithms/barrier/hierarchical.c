/* Barrier over two levels: signals up an in-order binomial tree to the leader of each node, a dissemination barrier of
 * the leaders (barrier/bruck.c), and signals down the same trees (barrier/tree.c). For N nodes of n processes, with
 * alpha' within nodes:
 *     T = 2 ceil(log2 n) alpha' + ceil(log2 N) alpha */
#include "internal.h"

void collwise_barrier_hierarchical(MPI_Comm comm, collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(0, comm);
    MPI_Comm node = levels.node;
    collwise_tree within = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, levels.leader, node, 0);
    for (int child = 0; child < within.child_count; child++) {
        collwise_await(collwise_tree_child(&within, child), node);
    }
    if (levels.is_leader) {
        collwise_barrier_bruck(levels.between, with);
    } else {
        collwise_signal(within.parent, node);
        collwise_await(within.parent, node);
    }
    for (int child = within.child_count - 1; child >= 0; child--) {
        collwise_signal(collwise_tree_child(&within, child), node);
    }
}
