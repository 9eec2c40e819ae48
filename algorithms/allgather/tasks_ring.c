/* Allgather from tasks, as HAN's (Luo et al. 2020, section III), between nodes around a ring. Each block is cut into
 * u segments. Leaders run
 *
 *     sg(0), iasg(1), sbiasg(2), ..., sbiasg(u - 1), sbia, sb
 *
 * and the others sg(0), sg(1), sbsg(2), ..., sb, sb. sg gathers a segment of the node's blocks at the leader, ia is an
 * allgather between leaders, sb a broadcast of all blocks within the node. If `within` says so, by socket, nb and sb,
 * between and within the sockets of a node, take the place of sb, and sg and
 * ng that of sg.
 *
 * Trees are as in reduce/binomial.c within nodes. With the times of tasks for one segment on the slowest leader, which
 * equations (3) and (4) of the paper add up:
 *     T = T(sg) + T(iasg) + (u - 2) T(sbiasg) + T(sbia) + T(sb) */
#include "tasks.h"

void collwise_allgather_tasks_ring(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_RING, all, block_bytes, comm, with);
}
