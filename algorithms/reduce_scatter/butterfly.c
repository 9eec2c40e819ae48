/* Partners, one process apart and then further and further, give each other half of what they still hold, which keeps
 * rank order; a last round brings the blocks to their places. Even ranks beyond a power of two first hand all their
 * data to the next rank:
 *     T = (log2 P + 1) alpha + m beta + (P - 1) / P m gamma
 *     T = (floor(log2 P) + 2) alpha + (2 m + m / P) beta + 2 m gamma        at most, if P is not a power of two */
#include "internal.h"

void collwise_reduce_scatter_butterfly(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                       MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_reduce_scatter_by_halving(data, offsets, mine, op, 1, comm);
}
