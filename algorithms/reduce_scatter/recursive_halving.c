/* Reduce-scatter by recursive halving (halving.c): partners, half of the processes apart and then nearer and nearer,
 * take one half each of what they hold. If P is not a power of two, even ranks below 2 (P - 2^floor(log2 P)) first send
 * all their data to the next rank, and get their block from it in the end:
 *     T = log2 P alpha + (P - 1) / P m (beta + gamma)
 *     T = (floor(log2 P) + 2) alpha + (2 m + m / P) beta + 2 m gamma        at most, if P is not a power of two */
#include "internal.h"

void collwise_reduce_scatter_recursive_halving(char *data, const size_t *offsets, char *mine,
                                               const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_reduce_scatter_by_halving(data, offsets, mine, op, 0, comm);
}
