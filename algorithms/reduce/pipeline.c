/* Reduction along a pipeline of all processes that ends at the root, segment by segment. The virtual rank is
 * v = (rank - root) mod P:
 *
 *     child of v:   v + 1, if below P
 *     parent of v:  v - 1
 *
 * If the operation does not commute, the tree's root is process 0, which sends the result to the root. Without that:
 *     T = (P + n_s - 2) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_pipeline(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                              MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_CHAIN, op->commutative ? root : 0, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
