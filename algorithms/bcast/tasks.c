/* Broadcasts from tasks, as HAN's (Luo et al. 2020, section III-A), between nodes along a chain, a binary tree or a
 * binomial tree, or by MPI's own MPI_Ibcast. The message is cut into u segments. Leaders run
 *
 *     ib(0), sbib(1), ..., sbib(u - 1), sb(u - 1)
 *
 * and the others sb(0), ..., sb(u - 1). ib(i) broadcasts segment i between leaders, sb(i) within the node; sbib(i)
 * starts ib(i) and sb(i - 1), and lets both go on until both are over. Between nodes a segment goes in parts of
 * between_segment_bytes, but for MPI_Ibcast. Within nodes it goes along binomial trees, through shared memory or by
 * MPI_Get, as `within` says. By socket, nb and sb, between and within the sockets of a node, take the place of sb.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(ib) + (u - 1) T(sbib) + T(sb) */
#include "tasks.h"

void collwise_bcast_tasks_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_CHAIN, data, bytes, root, comm, with);
}

void collwise_bcast_tasks_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_BINARY, data, bytes, root, comm, with);
}

void collwise_bcast_tasks_binomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_BINOMIAL, data, bytes, root, comm, with);
}

void collwise_bcast_tasks_library(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_LIBRARY, data, bytes, root, comm, with);
}
