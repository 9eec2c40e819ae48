/* Reduction up a k-nomial tree of radix K, segment by segment. The virtual rank is v = (rank - root) mod P, written in
 * base K:
 *
 *     children of v:  v + d K^j for d = 1 to K - 1 and each K^j below v's lowest nonzero digit (the root: each K^j), if
 *                     below P; smallest j first
 *     parent of v:    v with its lowest nonzero digit set to 0
 *
 * If the operation does not commute, the tree's root is process 0, which sends the result to the root. Without that:
 *     T = n_s (K - 1) ceil(log_K P) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_knomial(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                             MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_KNOMIAL, op->commutative ? root : 0, comm, with.radix);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
