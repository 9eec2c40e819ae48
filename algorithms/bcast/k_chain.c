/* Broadcast along K pipelines, to each of which the root sends every segment. The virtual rank is v = (rank - root)
 * mod P. The virtual ranks 1 to P - 1 are cut into K chains of consecutive ones, the first (P - 1) mod K chains longer
 * by one:
 *
 *     children of the root:    the first process of each chain
 *     child, parent of others: the next process of the chain, and the previous one (of the first one: the root)
 *
 * Formula (11), with the length of the longest chain:
 *     T = (ceil((P - 1) / K) + gamma(K + 1) n_s - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_k_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_K_CHAIN, root, comm, with.chains);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
