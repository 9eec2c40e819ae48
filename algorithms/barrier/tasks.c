/* Barriers from tasks, as HAN's (Luo et al. 2020, section III). Between nodes signals go up and down a chain, a binary
 * tree or a binomial tree. Then leaders run
 *
 *     sr, ir, ib, sb
 *
 * and the others sr, sb. sr signals to the leader, ir between leaders to one of them, ib back to the leaders, sb to
 * all processes of the node. By dissemination or MPI's own MPI_Ibarrier, ia is a barrier of the leaders, and they run
 *
 *     sr, ia, sb
 *
 * If `within` says so, by socket, sr, nr and nb, sb, within and between the sockets of a node, take the place of sr and
 * sb.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sr) + T(ir) + T(ib) + T(sb)   trees
 *     T = T(sr) + T(ia) + T(sb)   dissemination, MPI's own */
#include "tasks.h"

void collwise_barrier_tasks_chain(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_CHAIN, comm, with);
}

void collwise_barrier_tasks_binary(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_BINARY, comm, with);
}

void collwise_barrier_tasks_binomial(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_BINOMIAL, comm, with);
}

void collwise_barrier_tasks_doubling(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_DOUBLING, comm, with);
}

void collwise_barrier_tasks_library(MPI_Comm comm, collwise_parameters with) {
    collwise_task_barrier(COLLWISE_BETWEEN_LIBRARY, comm, with);
}
