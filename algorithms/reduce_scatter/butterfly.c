/* Reduce-scatter by a butterfly (halving.c): partners, one process apart and then further and further, take one half
 * each of what they hold, which keeps rank order; a last round brings the blocks to the processes that they belong to.
 * If P is not a power of two, even ranks below 2 (P - 2^floor(log2 P)) first send all their data to the next rank:
 *     T = (log2 P + 1) alpha + m beta + (P - 1) / P m gamma
 *     T = (floor(log2 P) + 2) alpha + (2 m + m / P) beta + 2 m gamma        at most, if P is not a power of two */
#include "internal.h"

void collwise_reduce_scatter_butterfly(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                       MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_reduce_scatter_by_halving(data, offsets, mine, op, 1, comm);
}
