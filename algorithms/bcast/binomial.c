/* Broadcast down a balanced binomial tree, segment by segment. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:  v + 2^k for each 2^k > v (the root: for each 2^k), if below P, smallest k first
 *     parent of v:    v without its highest bit
 *
 * Formula (7), without its last "- 1", with c = ceil(log2 P) children of the root, for P a power of two:
 *     T = (n_s gamma(c + 1) + sum of gamma(k) for k = 2 to c) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_binomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINOMIAL, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
