/* Reduction up a balanced binary tree, segment by segment; the tree is that of bcast/binary.c. The virtual rank is
 * v = (rank - root) mod P; level l is the virtual ranks from 2^l - 1 to 2^(l+1) - 2:
 *
 *     children of v on level l:  v + 2^l and v + 2^(l+1), if below P
 *     parent of v on level l:    v - 2^(l-1) if that is on level l - 1, else v - 2^l
 *
 * Subtrees do not hold consecutive ranks, so the operation has to commute:
 *     T = 2 (ceil(log2(P + 1)) + n_s - 2) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_binary(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                            MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
