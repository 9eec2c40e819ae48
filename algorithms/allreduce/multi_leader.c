/* Allreduces from tasks with several leaders on each node (Bayatpour et al. 2017), between nodes along a chain, a
 * binary tree or a binomial tree. The tasks are those of allreduce/tasks.c. Each leader has a share, an equal part of
 * every segment: sr reduces each share to its leader, ir and ib take it to the other nodes and back, sb broadcasts it.
 * Processes run
 *
 *     sr(0), irsr(1), ibirsr(2), sbibirsr(3), ..., sbibirsr(u - 1), sbibir, sbib, sb
 *
 * with ir and ib for a leader's own share, sr and sb for all shares, which go straight between the leader and the
 * others of its node. Where a node has fewer processes than `leaders`, all nodes have so many leaders. Operations
 * that do not commute have one.
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes. With the times of tasks for one
 * segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(sr) + T(irsr) + T(ibirsr) + (u - 3) T(sbibirsr) + T(sbibir) + T(sbib) + T(sb) */
#include "tasks.h"

void collwise_allreduce_multi_leader_chain(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                           collwise_parameters with) {
    collwise_multi_leader_allreduce(COLLWISE_BETWEEN_CHAIN, data, elements, op, comm, with);
}

void collwise_allreduce_multi_leader_binary(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                            collwise_parameters with) {
    collwise_multi_leader_allreduce(COLLWISE_BETWEEN_BINARY, data, elements, op, comm, with);
}

void collwise_allreduce_multi_leader_binomial(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                              collwise_parameters with) {
    collwise_multi_leader_allreduce(COLLWISE_BETWEEN_BINOMIAL, data, elements, op, comm, with);
}
