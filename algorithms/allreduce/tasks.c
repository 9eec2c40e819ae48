/* Allreduces from tasks, as HAN's (Luo et al. 2020, section III-B). The message is cut into u segments. Between nodes
 * they are reduced and broadcast along a chain, a binary tree or a binomial tree, or by MPI's own MPI_Ireduce and
 * MPI_Ibcast. Then leaders run
 *
 *     sr(0), irsr(1), ibirsr(2), sbibirsr(3), ..., sbibirsr(u - 1), sbibir, sbib, sb
 *
 * and the others sr(0), sr(1), sr(2), sbsr(3), ..., sbsr(u - 1), sb, sb, sb. sr reduces a segment within the node, ir
 * between leaders, ib broadcasts it between leaders over the same tree, sb within the node; in task i they are applied
 * to segments i, i - 1, i - 2 and i - 3. All that a task starts goes on until all of it is over. Between nodes a
 * segment goes in parts of between_segment_bytes, but for MPI's own.
 *
 * By recursive doubling or around a ring, ia is an allreduce between leaders, and they run
 *
 *     sr(0), iasr(1), sbiasr(2), ..., sbiasr(u - 1), sbia, sb
 *
 * and the others sr(0), sr(1), sbsr(2), ..., sb, sb.
 *
 * Within nodes a segment goes along binomial trees, through shared memory or by MPI_Get, as `within` says. By socket,
 * sr, nr and nb, sb, within and between the sockets of a node, take the place of sr and sb. If the operation does not
 * commute, recursive doubling takes the place of the ring; if, besides, ranks of a node are not consecutive, it is a
 * reduction and a broadcast along binomial trees.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sr) + T(irsr) + T(ibirsr) + (u - 3) T(sbibirsr) + T(sbibir) + T(sbib) + T(sb)   trees, MPI's own
 *     T = T(sr) + T(iasr) + (u - 2) T(sbiasr) + T(sbia) + T(sb)   doubling, ring */
#include "tasks.h"

void collwise_allreduce_tasks_chain(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_CHAIN, data, elements, op, comm, with);
}

void collwise_allreduce_tasks_binary(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_BINARY, data, elements, op, comm, with);
}

void collwise_allreduce_tasks_binomial(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                       collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_BINOMIAL, data, elements, op, comm, with);
}

void collwise_allreduce_tasks_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                       collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_DOUBLING, data, elements, op, comm, with);
}

void collwise_allreduce_tasks_ring(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                   collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_RING, data, elements, op, comm, with);
}

void collwise_allreduce_tasks_library(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                      collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_LIBRARY, data, elements, op, comm, with);
}
