/* Scatters from tasks, as HAN's (Luo et al. 2020, section III), between nodes along a chain, a binary tree or a
 * binomial tree, or by MPI's own MPI_Iscatterv. Each block is cut into u segments. Leaders run
 *
 *     is(0), ssis(1), ..., ssis(u - 1), ss(u - 1)
 *
 * and the others ss(0), ..., ss(u - 1). is(i) scatters segment i of all blocks from the root to the leaders, ss(i)
 * those of a node within it. If `within` says so, by socket, ns and ss, between and within the sockets of a node, take
 * the place of ss.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(is) + (u - 1) T(ssis) + T(ss) */
#include "tasks.h"

void collwise_scatter_tasks_chain(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                  collwise_parameters with) {
    collwise_task_scatter(COLLWISE_BETWEEN_CHAIN, all, mine, block_bytes, root, comm, with);
}

void collwise_scatter_tasks_binary(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                   collwise_parameters with) {
    collwise_task_scatter(COLLWISE_BETWEEN_BINARY, all, mine, block_bytes, root, comm, with);
}

void collwise_scatter_tasks_binomial(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                     collwise_parameters with) {
    collwise_task_scatter(COLLWISE_BETWEEN_BINOMIAL, all, mine, block_bytes, root, comm, with);
}

void collwise_scatter_tasks_library(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_task_scatter(COLLWISE_BETWEEN_LIBRARY, all, mine, block_bytes, root, comm, with);
}
