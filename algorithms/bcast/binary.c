/* A balanced binary tree, formula (10):
 *     T = gamma(3) (floor(log2 P) + n_s - 1) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
