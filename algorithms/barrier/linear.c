/* Linear barrier, over a flat tree in which all other processes are children of process 0: they signal process 0, which
 * signals one after another back when it has the signals of all:
 *     T = P alpha */
#include "internal.h"

void collwise_barrier_linear(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, 0, comm, 0);
    if (tree.parent >= 0) {
        collwise_signal(tree.parent, comm);
        collwise_await(tree.parent, comm);
        return;
    }
    char token; /* never read, so that all receives can share it */
    collwise_requests signals = collwise_requests_make(tree.child_count, comm);
    for (int child = 0; child < tree.child_count; child++) {
        collwise_start_receive(&signals, &token, COLLWISE_TOKEN_BYTES, collwise_tree_child(&tree, child));
    }
    collwise_wait(&signals);
    for (int child = 0; child < tree.child_count; child++) {
        collwise_signal(collwise_tree_child(&tree, child), comm);
    }
    collwise_requests_free(&signals);
}
