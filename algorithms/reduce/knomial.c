/* Up a k-nomial tree of radix K. Operations that do not commute go to process 0, which passes the result on; without
 * that:
 *     T = n_s (K - 1) ceil(log_K P) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_knomial(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                             MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_KNOMIAL, op->commutative ? root : 0, comm, with.fanout);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
