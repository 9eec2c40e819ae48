/* Barrier from tasks, as HAN's (Luo et al. 2020, section III), between nodes by dissemination. Leaders run
 *
 *     sr, ia, sb
 *
 * and the others sr, sb. sr signals to the leader, ia is a barrier of the leaders, sb signals to all processes of the
 * node. If `within` says so, by socket, sr, nr and nb, sb, within and between the sockets of a node, take the place of
 * sr and sb.
 *
 * Trees are as in reduce/binomial.c within nodes. With the times of tasks on the slowest leader, which equations (3)
 * and (4) of the paper add up:
 *     T = T(sr) + T(ia) + T(sb) */
#include "tasks.h"

void collwise_barrier_tasks_doubling(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_DOUBLING, comm, with);
}
