/* The binomial scatter that two broadcasts begin with. The message has P equal parts; with v = (rank - root) mod P,
 * they go down an in-order binomial tree:
 *
 *     children of v:           v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P, largest
 *                              k first
 *     parent of v:             v without its lowest bit
 *     subtree of child v + 2^k: v + 2^k to v + 2^(k+1) - 1, whose parts v sends to the child
 *
 *     T = ceil(log2 P) alpha + (P - 1) / P m beta */
#include "internal.h"

void collwise_scatter_message(char *data, size_t bytes, int root, MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    int first = tree.virtual_rank, end = first + collwise_tree_size(&tree); /* whose parts are here */
    if (tree.parent >= 0) {
        collwise_part part = collwise_equal_parts(bytes, tree.procs, first, end);
        collwise_receive(data + part.first, part.count, tree.parent, comm);
    }
    for (int child = tree.child_count - 1; child >= 0; child--) {
        int child_first = first + (1 << child);
        collwise_part part = collwise_equal_parts(bytes, tree.procs, child_first, end);
        collwise_send(data + part.first, part.count, collwise_tree_child(&tree, child), comm);
        end = child_first;
    }
}
