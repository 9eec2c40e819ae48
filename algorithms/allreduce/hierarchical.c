/* Allreduce over two levels, as HAN's (Luo et al. 2020, section III-B): each segment is reduced within every node (sr)
 * and between the nodes' leaders (ir), and broadcast between the leaders (ib) and within the nodes (sb), over the same
 * in-order binomial trees with process 0 as root (reduce/hierarchical.c). A process sends its contribution to a segment
 * up and passes another one down by turns, which keeps both directions of the network busy (sbibirsr). It passes a
 * segment down 2 d segments after it has sent its own contribution up, where d is its depth in both trees together:
 * HAN does so after 2 at every leader, which suffices for trees of two levels.
 *
 * If the operation does not commute and ranks of a node are not consecutive, it is the allreduce non_overlapping. */
#include "internal.h"

void collwise_allreduce_hierarchical(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_two_levels tree = collwise_two_levels_of(COLLWISE_IN_ORDER_BINOMIAL, COLLWISE_IN_ORDER_BINOMIAL, 0, comm);
    if (op->commutative || tree.levels.nodes->in_order) {
        collwise_two_level_allreduce(data, elements, op, &tree, with.segment_bytes);
    } else {
        collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
    }
}
