/* Reduction up an in-order binary tree, segment by segment. Its root is the last process, and virtual ranks count
 * downwards from there: v = P - 1 - rank. Each subtree is the n consecutive virtual ranks from v on, with v at its
 * head:
 *
 *     children of v:  v + 1, with the floor((n - 1) / 2) virtual ranks from there on (1 if n = 2),
 *                     and the next virtual rank, with the rest
 *     parent of v:    the one that v is a child of
 *
 * If another process is the root, it gets the result from the last one, which is the last summand:
 *     T = 2 (ceil(log2(P + 1)) + n_s - 2) (alpha + m_s beta + m_s gamma) + alpha + m beta */
#include "internal.h"

void collwise_reduce_in_order_binary(const char *data, char *result, size_t elements, const collwise_operation *op,
                                     int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINARY, collwise_size_of(comm) - 1, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
