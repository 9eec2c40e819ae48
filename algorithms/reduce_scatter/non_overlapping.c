/* A reduction of everything to the first process, up an in-order binomial tree, and then a linear scatter.
 *     T = ceil(log2 P) (alpha + m beta + m gamma) + (P - 1) (alpha + m / P beta) */
#include "internal.h"

/* Children of a tree in order hold ever higher ranks, all above their parent's. */
static void reduce_to_first(char *data, size_t elements, const collwise_operation *op, const collwise_tree *tree,
                            MPI_Comm comm) {
    size_t bytes = elements * op->element_bytes;
    char *received = tree->child_count > 0 ? collwise_scratch(bytes, comm) : NULL;
    for (int child = 0; child < tree->child_count; child++) {
        collwise_receive(received, bytes, collwise_tree_child(tree, child), comm);
        collwise_combine_left(op, data, received, elements);
    }
    if (tree->parent >= 0) {
        collwise_send(data, bytes, tree->parent, comm);
    }
    collwise_scratch_free(received);
}

void collwise_reduce_scatter_non_overlapping(char *data, const size_t *offsets, char *mine,
                                             const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, 0, comm, 0);
    reduce_to_first(data, offsets[tree.procs], op, &tree, comm);
    if (tree.parent >= 0) {
        int rank = tree.virtual_rank;
        collwise_receive(mine, (offsets[rank + 1] - offsets[rank]) * op->element_bytes, 0, comm);
        return;
    }
    collwise_copy(mine, data, offsets[1] * op->element_bytes);
    for (int rank = 1; rank < tree.procs; rank++) {
        collwise_send(data + offsets[rank] * op->element_bytes, (offsets[rank + 1] - offsets[rank]) * op->element_bytes,
                      rank, comm);
    }
}
