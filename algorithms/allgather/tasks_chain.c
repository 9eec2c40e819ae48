/* Allgather from tasks, as HAN's (Luo et al. 2020, section III), between nodes along a chain. Each block is cut into
 * u segments. Leaders run
 *
 *     sg(0), igsg(1), ibigsg(2), sbibigsg(3), ..., sbibigsg(u - 1), sbibig, sbib, sb
 *
 * and the others sg(0), sg(1), sg(2), sbsg(3), ..., sb, sb, sb. sg gathers a segment of the node's blocks at the
 * leader, ig those of all nodes at one leader, ib broadcasts all of them to the leaders, sb within the node. If
 * `within` says so, by socket, nb and sb, between and within the sockets of a node, take the place of sb, and sg and
 * ng that of sg.
 *
 * Trees are as in bcast/chain.c between nodes and reduce/binomial.c within them. With the times of tasks for one
 * segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sg) + T(igsg) + T(ibigsg) + (u - 3) T(sbibigsg) + T(sbibig) + T(sbib) + T(sb) */
#include "tasks.h"

void collwise_allgather_tasks_chain(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_CHAIN, all, block_bytes, comm, with);
}
