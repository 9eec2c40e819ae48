/* Non-blocking sends of each segment to all others; the building block whose cost is gamma(P), formula (3):
 *     T = gamma(P) (alpha + m beta) */
#include "internal.h"

void collwise_bcast_linear_nonblocking(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    collwise_tree_bcast(data, bytes, &tree, with.segment_bytes, comm);
}
