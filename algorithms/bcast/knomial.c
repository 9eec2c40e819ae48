/* Broadcast down a k-nomial tree of radix K, segment by segment. The virtual rank is v = (rank - root) mod P, written
 * in base K:
 *
 *     children of v:  v + d K^j for d = 1 to K - 1 and each K^j below v's lowest nonzero digit (the root: each K^j), if
 *                     below P; largest j first
 *     parent of v:    v with its lowest nonzero digit set to 0
 *
 * In the manner of formula (7), with L = log_K P levels, for P a power of K:
 *     T = (n_s gamma((K - 1) L + 1) + sum of gamma((K - 1) k + 1) for k = 1 to L - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_knomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_KNOMIAL, root, comm, with.radix);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
