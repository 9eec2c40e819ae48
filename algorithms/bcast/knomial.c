/* A k-nomial tree of radix K, with L = ceil(log_K P) levels:
 *     T = (n_s gamma((K - 1) L + 1) + sum of gamma((K - 1) k + 1) for k = 1 to L - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_knomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_KNOMIAL, root, comm, with.fanout);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
