/* Allgathers from tasks, as HAN's (Luo et al. 2020, section III). Each block is cut into u segments. Between nodes they
 * are gathered and broadcast along a chain, a binary tree or a binomial tree. Then leaders run
 *
 *     sg(0), igsg(1), ibigsg(2), sbibigsg(3), ..., sbibigsg(u - 1), sbibig, sbib, sb
 *
 * and the others sg(0), sg(1), sg(2), sbsg(3), ..., sb, sb, sb. sg gathers a segment of the node's blocks at the
 * leader, ig those of all nodes at one leader, ib broadcasts all of them to the leaders, sb within the node.
 *
 * By doubling (Bruck), around a ring or by MPI's own MPI_Iallgatherv, ia is an allgather between leaders, and they run
 *
 *     sg(0), iasg(1), sbiasg(2), ..., sbiasg(u - 1), sbia, sb
 *
 * and the others sg(0), sg(1), sbsg(2), ..., sb, sb. If `within` says so, by socket, nb and sb, between and within the
 * sockets of a node, take the place of sb, and sg and ng that of sg.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sg) + T(igsg) + T(ibigsg) + (u - 3) T(sbibigsg) + T(sbibig) + T(sbib) + T(sb)   trees
 *     T = T(sg) + T(iasg) + (u - 2) T(sbiasg) + T(sbia) + T(sb)   doubling, ring, MPI's own */
#include "tasks.h"

void collwise_allgather_tasks_chain(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_CHAIN, all, block_bytes, comm, with);
}

void collwise_allgather_tasks_binary(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_BINARY, all, block_bytes, comm, with);
}

void collwise_allgather_tasks_binomial(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_BINOMIAL, all, block_bytes, comm, with);
}

void collwise_allgather_tasks_doubling(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_DOUBLING, all, block_bytes, comm, with);
}

void collwise_allgather_tasks_ring(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_RING, all, block_bytes, comm, with);
}

void collwise_allgather_tasks_library(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_task_allgather(COLLWISE_BETWEEN_LIBRARY, all, block_bytes, comm, with);
}
