/* Allreduce from tasks, as HAN's (Luo et al. 2020, section III-B), between nodes by recursive doubling. The message
 * is cut into u segments. Leaders run
 *
 *     sr(0), iasr(1), sbiasr(2), ..., sbiasr(u - 1), sbia, sb
 *
 * and the others sr(0), sr(1), sbsr(2), ..., sb, sb. sr reduces a segment within the node, ia is an allreduce between
 * leaders, sb a broadcast within the node; in task i they are applied to segments i, i - 1 and i - 2. Within nodes it
 * goes along binomial trees, through shared memory or by MPI_Get, as `within` says. By socket, sr, nr and nb, sb,
 * within and between the sockets of a node, take the place of sr and sb. If the operation does not commute and ranks
 * of a node are not consecutive, it is a reduction and a broadcast along binomial trees.
 *
 * Trees are as in reduce/binomial.c within nodes. With the times of tasks for one segment on the slowest leader, which
 * equations (3) and (4) of the paper add up:
 *     T = T(sr) + T(iasr) + (u - 2) T(sbiasr) + T(sbia) + T(sb) */
#include "tasks.h"

void collwise_allreduce_tasks_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                       collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_DOUBLING, data, elements, op, comm, with);
}
