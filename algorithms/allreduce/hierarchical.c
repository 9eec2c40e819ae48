/* Allreduce over two levels, as HAN's (Luo et al. 2020, section III-B): each segment is reduced within every node (sr)
 * and between the nodes' leaders (ir), and broadcast between the leaders (ib) and within the nodes (sb), over the same
 * in-order binomial trees with process 0 as root (reduce/hierarchical.c). A process sends its contribution to a segment
 * up and passes another one down by turns, which keeps both directions of the network busy (sbibirsr). HAN's leaders
 * pass a segment down two segments after they sent theirs up; here the distance grows with the way to the root and
 * back: 2 d (1 + 32 KiB / m_s), where d is the process's depth in both trees together.
 *
 * If the operation does not commute and ranks of a node are not consecutive, it is the allreduce non_overlapping.
 *
 * For one segment and N nodes of n processes, powers of two, with alpha' and beta' within nodes:
 *     T = log2 n (2 alpha' + 2 m beta' + m gamma) + log2 N (2 alpha + 2 m beta + m gamma) */
#include "internal.h"

void collwise_allreduce_hierarchical(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_two_level_allreduce(COLLWISE_IN_ORDER_BINOMIAL, data, elements, op, comm, with);
}
