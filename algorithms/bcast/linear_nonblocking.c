/* Broadcast down a linear (flat) tree, in which all other processes are children of the root: it sends each segment to
 * all of them with non-blocking sends. One segment is the building block whose cost defines gamma(P). Formula (3), for
 * each segment:
 *     T = n_s gamma(P) (alpha + m_s beta) */
#include "internal.h"

void collwise_bcast_linear_nonblocking(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
