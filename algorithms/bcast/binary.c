/* Broadcast down a balanced binary tree, segment by segment. The virtual rank is v = (rank - root) mod P; level l of
 * the tree is the virtual ranks from 2^l - 1 to 2^(l+1) - 2:
 *
 *     children of v on level l:  v + 2^l and v + 2^(l+1), if below P
 *     parent of v on level l:    v - 2^(l-1) if that is on level l - 1, else v - 2^l
 *
 * Formula (10), for a full tree:
 *     T = gamma(3) (floor(log2 P) + n_s - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
