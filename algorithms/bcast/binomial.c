/* A balanced binomial tree, formula (7):
 *     T = (n_s gamma(floor(log2 P) + 1) + sum of gamma(k) for k = 2 to floor(log2 P) - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_binomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINOMIAL, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
