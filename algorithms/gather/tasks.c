/* Gathers from tasks, as HAN's (Luo et al. 2020, section III), between nodes along a chain, a binary tree or a binomial
 * tree, or by MPI's own MPI_Igatherv. Each block is cut into u segments. Leaders run
 *
 *     sg(0), igsg(1), ..., igsg(u - 1), ig(u - 1)
 *
 * and the others sg(0), ..., sg(u - 1). sg(i) gathers segment i of the blocks of a node at its leader, ig(i) those of
 * all nodes at the root. If `within` says so, by socket, sg and ng, within and between the sockets of a node, take
 * the place of sg.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sg) + (u - 1) T(igsg) + T(ig) */
#include "tasks.h"

void collwise_gather_tasks_chain(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    collwise_task_gather(COLLWISE_BETWEEN_CHAIN, mine, all, block_bytes, root, comm, with);
}

void collwise_gather_tasks_binary(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                  collwise_parameters with) {
    collwise_task_gather(COLLWISE_BETWEEN_BINARY, mine, all, block_bytes, root, comm, with);
}

void collwise_gather_tasks_binomial(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_task_gather(COLLWISE_BETWEEN_BINOMIAL, mine, all, block_bytes, root, comm, with);
}

void collwise_gather_tasks_library(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                   collwise_parameters with) {
    collwise_task_gather(COLLWISE_BETWEEN_LIBRARY, mine, all, block_bytes, root, comm, with);
}
