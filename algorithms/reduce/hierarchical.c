/* Reduction over two levels: in-order binomial trees of the processes of each node, and of the nodes' leaders, of which
 * the root is one (reduce/binomial.c). For each segment a leader
 *
 *     combines what its children on the same node send (sr)
 *     combines what its children, other leaders, send, and starts to send the sum to its parent (ir)
 *
 * The receives of the next segment are posted on both levels meanwhile (irsr).
 *
 * If the operation does not commute, the root of both trees is process 0, which sends the result to the root; where
 * ranks of a node are not consecutive, the reduction is that over one binomial tree.
 *
 * For one segment and N nodes of n processes, powers of two, with alpha' and beta' within nodes:
 *     T = log2 n (alpha' + m beta' + m gamma) + log2 N (alpha + m beta + m gamma) */
#include "internal.h"

void collwise_reduce_hierarchical(const char *data, char *result, size_t elements, const collwise_operation *op,
                                  int root, MPI_Comm comm, collwise_parameters with) {
    collwise_two_level_reduce(COLLWISE_IN_ORDER_BINOMIAL, data, result, elements, op, root, comm, with);
}
