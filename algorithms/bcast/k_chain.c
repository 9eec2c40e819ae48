/* K pipelines that the root feeds by turns, formula (11):
 *     T = (floor((P - 1) / K) + gamma(K + 1) n_s - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_k_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_K_CHAIN, root, comm, with.fanout);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
