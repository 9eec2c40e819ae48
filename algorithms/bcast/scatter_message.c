/* The message's P blocks go down an in-order binomial tree, each process passing on half of what it holds, the larger
 * subtree's half first:
 *     T = ceil(log2 P) alpha + (P - 1) / P m beta */
#include "internal.h"

size_t collwise_block_start(size_t size, size_t procs, size_t index) {
    return index * (size / procs) + collwise_least(index, size % procs);
}

void collwise_scatter_message(char *data, size_t bytes, int root, MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    size_t first = collwise_block_start(bytes, tree.procs, tree.virtual_rank);
    size_t end = collwise_block_start(bytes, tree.procs, tree.virtual_rank + collwise_tree_size(&tree));
    if (tree.parent >= 0) {
        collwise_receive(data + first, end - first, tree.parent, comm);
    }
    for (int child = tree.child_count - 1; child >= 0; child--) {
        size_t half = collwise_block_start(bytes, tree.procs, tree.virtual_rank + (1 << child));
        collwise_send(data + half, end - half, collwise_tree_child(&tree, child), comm);
        end = half;
    }
}
