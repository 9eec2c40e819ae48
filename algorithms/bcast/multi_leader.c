/* Broadcasts from tasks with several leaders on each node, between nodes along a chain, a binary tree or a binomial
 * tree. Each leader passes on its share, an equal part of every segment. On the root's node the broadcast within the
 * node comes first, by which leaders get their shares: they run
 *
 *     sb(0), ibsb(1), ..., ibsb(u - 1), ib(u - 1)
 *
 * with ib for a leader's own share. Leaders of other nodes run
 *
 *     ib(0), sbib(1), ..., sbib(u - 1), sb(u - 1)
 *
 * with sb for the shares of all leaders of the node, each sent by its leader to all others; other processes run sb
 * only. Where a node has fewer processes than `leaders`, all nodes have so many leaders (Bayatpour et al. 2017 have
 * them in an allreduce).
 *
 * Trees are as in bcast/chain.c, bcast/binary.c and reduce/binomial.c between nodes. With the times of tasks for one
 * segment on the slowest leader, which equations (3) and (4) of the paper add up:
 *     T = T(ib) + (u - 1) T(sbib) + T(sb) */
#include "tasks.h"

void collwise_bcast_multi_leader_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_multi_leader_bcast(COLLWISE_BETWEEN_CHAIN, data, bytes, root, comm, with);
}

void collwise_bcast_multi_leader_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_multi_leader_bcast(COLLWISE_BETWEEN_BINARY, data, bytes, root, comm, with);
}

void collwise_bcast_multi_leader_binomial(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_multi_leader_bcast(COLLWISE_BETWEEN_BINOMIAL, data, bytes, root, comm, with);
}
