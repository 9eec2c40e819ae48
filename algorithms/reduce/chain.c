/* Reduction along K pipelines that end at the root, which receives each segment from one after another. The virtual
 * rank is v = (rank - root) mod P. The virtual ranks 1 to P - 1 are cut into K chains of consecutive ones, the first (P
 * - 1) mod K chains longer by one:
 *
 *     children of the root:    the first process of each chain
 *     child, parent of others: the next process of the chain, and the previous one (of the first one: the root)
 *
 * If the operation does not commute, the tree's root is process 0, which sends the result to the root. Without that:
 *     T = (ceil((P - 1) / K) - 1 + K n_s) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_chain(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                           MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_K_CHAIN, op->commutative ? root : 0, comm, with.chains);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
