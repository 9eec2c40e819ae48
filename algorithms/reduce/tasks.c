/* Reductions from tasks, as HAN's (Luo et al. 2020, section III-B), between nodes along a chain, a binary tree or a
 * binomial tree, or by MPI's own MPI_Ireduce. The message is cut into u segments. Leaders run
 *
 *     sr(0), irsr(1), ..., irsr(u - 1), ir(u - 1)
 *
 * and the others sr(0), ..., sr(u - 1). sr(i) reduces segment i within the node, ir(i) between leaders; irsr(i) starts
 * ir(i - 1) and sr(i), and lets both go on until both are over. Between nodes a segment goes in parts of
 * between_segment_bytes, but for MPI_Ireduce. Within nodes it goes along binomial trees, through shared memory or by
 * MPI_Get, as `within` says. By socket, sr and nr, within and between the sockets of a node, take the place of sr. If
 * the operation does not commute, it is reduced to process 0, which sends the result to the root; where ranks of a node
 * are not consecutive, along one binomial tree.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes, and reduce/binomial.c within them.
 * With the times of tasks for one segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sr) + (u - 1) T(irsr) + T(ir) */
#include "tasks.h"

void collwise_reduce_tasks_chain(const char *data, char *result, size_t elements, const collwise_operation *op,
                                 int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_reduce(COLLWISE_BETWEEN_CHAIN, data, result, elements, op, root, comm, with);
}

void collwise_reduce_tasks_binary(const char *data, char *result, size_t elements, const collwise_operation *op,
                                  int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_reduce(COLLWISE_BETWEEN_BINARY, data, result, elements, op, root, comm, with);
}

void collwise_reduce_tasks_binomial(const char *data, char *result, size_t elements, const collwise_operation *op,
                                    int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_reduce(COLLWISE_BETWEEN_BINOMIAL, data, result, elements, op, root, comm, with);
}

void collwise_reduce_tasks_library(const char *data, char *result, size_t elements, const collwise_operation *op,
                                   int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_reduce(COLLWISE_BETWEEN_LIBRARY, data, result, elements, op, root, comm, with);
}
