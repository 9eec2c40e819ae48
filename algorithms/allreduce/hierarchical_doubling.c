/* Allreduce over two levels, for short messages: a reduction up an in-order binomial tree to the leader of each node
 * (reduce/binomial.c), recursive doubling by the leaders (allreduce/recursive_doubling.c), and a broadcast down a
 * binomial tree on each node (bcast/binomial.c), none of them segmented.
 *
 * If the operation does not commute and ranks of a node are not consecutive, it is recursive doubling by all.
 *
 * For N nodes of n processes, powers of two, with alpha' and beta' within nodes:
 *     T = log2 n (2 alpha' + 2 m beta' + m gamma) + log2 N (alpha + m beta + m gamma) */
#include "internal.h"

static void reduce_on_node(char *data, size_t elements, const collwise_operation *op, const collwise_levels *levels) {
    collwise_parameters whole = {.segment_bytes = 0};
    if (!levels->is_leader) {
        collwise_reduce_binomial(data, NULL, elements, op, levels->leader, levels->node, whole);
    } else if (collwise_node_size(levels->nodes, levels->own_node) > 1) {
        size_t bytes = elements * op->element_bytes;
        char *own = collwise_scratch(bytes, levels->node);
        collwise_copy(own, data, bytes);
        collwise_reduce_binomial(own, data, elements, op, levels->leader, levels->node, whole);
        collwise_scratch_free(own);
    }
}

void collwise_allreduce_hierarchical_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                              collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(0, comm);
    if (!op->commutative && !levels.nodes->in_order) {
        collwise_allreduce_recursive_doubling(data, elements, op, comm, with);
        return;
    }
    reduce_on_node(data, elements, op, &levels);
    if (levels.is_leader && levels.nodes->nodes > 1) {
        collwise_allreduce_recursive_doubling(data, elements, op, levels.between, with);
    }
    collwise_bcast_binomial(data, elements * op->element_bytes, levels.leader, levels.node, with);
}
