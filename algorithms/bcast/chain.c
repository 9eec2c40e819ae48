/* Broadcast along a pipeline of all processes, segment by segment. The virtual rank is v = (rank - root) mod P:
 *
 *     child of v:   v + 1, if below P
 *     parent of v:  v - 1
 *
 * Formula (8):
 *     T = (P + n_s - 2) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_CHAIN, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
