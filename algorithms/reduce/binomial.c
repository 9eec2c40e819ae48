/* Reduction up an in-order binomial tree, segment by segment. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:  v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P, smallest k first
 *     parent of v:    v without its lowest bit
 *
 * If the operation does not commute, the tree's root is process 0, which sends the result to the root. Without that:
 *     T = n_s ceil(log2 P) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_binomial(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                              MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, op->commutative ? root : 0, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
