/* Reduction over two levels: in-order binomial trees of the processes of each node, and of the nodes' leaders, of which
 * the root is one (reduce/binomial.c). For each segment a leader
 *
 *     combines what its children on the same node send (sr)
 *     combines what its children, other leaders, send, and starts to send the sum to its parent (ir)
 *
 * The receives of the next segment are posted on both levels meanwhile (irsr).
 *
 * If the operation does not commute, the root of both trees is process 0, which sends the result to the root; where
 * ranks of a node are not consecutive, the reduction is that over one binomial tree. */
#include "internal.h"

void collwise_reduce_hierarchical(const char *data, char *result, size_t elements, const collwise_operation *op,
                                  int root, MPI_Comm comm, collwise_parameters with) {
    int rank = collwise_rank_in(comm), top = op->commutative ? root : 0;
    size_t bytes = elements * op->element_bytes;
    collwise_two_levels tree =
        collwise_two_levels_of(COLLWISE_IN_ORDER_BINOMIAL, COLLWISE_IN_ORDER_BINOMIAL, top, comm);
    if (!op->commutative && !tree.levels.nodes->in_order) {
        collwise_reduce_binomial(data, result, elements, op, root, comm, with);
        return;
    }
    char *at_top = rank == top && rank != root ? collwise_scratch(bytes, comm) : result;
    collwise_two_level_reduce(data, at_top, elements, op, &tree, with.segment_bytes);
    if (top != root && rank == top) {
        collwise_send(at_top, bytes, root, comm);
        collwise_scratch_free(at_top);
    } else if (top != root && rank == root) {
        collwise_receive(result, bytes, top, comm);
    }
}
