/* Barrier from tasks, as HAN's (Luo et al. 2020, section III), between nodes along a chain. Leaders run
 *
 *     sr, ir, ib, sb
 *
 * and the others sr, sb. sr signals to the leader, ir between leaders to one of them, ib back to the leaders, sb to
 * all processes of the node. If `within` says so, by socket, sr, nr and nb, sb, within and between the sockets of a
 * node, take the place of sr and sb.
 *
 * Trees are as in bcast/chain.c between nodes and reduce/binomial.c within them. With the times of tasks on the
 * slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sr) + T(ir) + T(ib) + T(sb) */
#include "tasks.h"

void collwise_barrier_tasks_chain(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_CHAIN, comm, with);
}
