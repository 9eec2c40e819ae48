/* Alltoalls from tasks, as HAN's (Luo et al. 2020, section III), between nodes by pairwise exchange or by MPI's own
 * MPI_Ialltoallv. Each block is cut into u segments. Leaders run
 *
 *     sg(0), iasg(1), ssiasg(2), ..., ssiasg(u - 1), ssia, ss
 *
 * and the others sg(0), sg(1), sssg(2), ..., ss, ss. sg gathers a segment of all blocks of the node's processes at
 * the leader, ia exchanges them between leaders, two nodes' in one message each way, ss scatters what came. If
 * `within` says so, by socket, sg and ng, within and between the sockets of a node, take the place of sg, and ns and ss
 * that of ss.
 *
 * Trees are as in reduce/binomial.c within nodes. With the times of tasks for one segment on the slowest leader, which
 * equations (3) and (4) of the paper add up:
 *     T = T(sg) + T(iasg) + (u - 2) T(ssiasg) + T(ssia) + T(ss) */
#include "tasks.h"

void collwise_alltoall_tasks_pairwise(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                      collwise_parameters with) {
    collwise_task_alltoall(COLLWISE_BETWEEN_PAIRWISE, send, receive, block_bytes, comm, with);
}

void collwise_alltoall_tasks_library(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_task_alltoall(COLLWISE_BETWEEN_LIBRARY, send, receive, block_bytes, comm, with);
}
