/* All processes report to process 0, which releases one after another when it has heard from all:
 *     T = (P - 1) alpha */
#include "internal.h"

void collwise_barrier_linear(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, 0, comm, 0);
    if (tree.parent >= 0) {
        collwise_send(NULL, 0, tree.parent, comm);
        collwise_receive(NULL, 0, tree.parent, comm);
        return;
    }
    collwise_requests reports = collwise_requests_make(tree.child_count, comm);
    for (int child = 0; child < tree.child_count; child++) {
        collwise_start_receive(&reports, NULL, 0, collwise_tree_child(&tree, child));
    }
    collwise_wait(&reports);
    for (int child = 0; child < tree.child_count; child++) {
        collwise_send(NULL, 0, collwise_tree_child(&tree, child), comm);
    }
    collwise_requests_free(&reports);
}
