/* Up a balanced binary tree, whose subtrees do not hold consecutive ranks:
 *     T = 2 (ceil(log2(P + 1)) + n_s - 2) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_binary(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                            MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
