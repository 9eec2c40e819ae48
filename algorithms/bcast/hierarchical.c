/* Broadcast over two levels, as HAN's (Luo et al. 2020, section III-A): binomial trees of the nodes' leaders, of which
 * the root is one, and of the processes of each node (bcast/binomial.c). For each segment a leader
 *
 *     waits for it from its parent, and posts the receive of the next one
 *     starts to send it to its children, other leaders (ib)
 *     starts to send it to its children on the same node (sb)
 *
 * and starts neither before the sends of the previous segment to the same children have ended. The broadcast of a
 * segment within a node therefore goes on while the next one arrives from other nodes (sbib).
 *
 * For one segment and N nodes of n processes, powers of two, with alpha' and beta' within nodes:
 *     T = log2 N (alpha + m beta) + log2 n (alpha' + m beta') */
#include "internal.h"

void collwise_bcast_hierarchical(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_two_level_bcast(COLLWISE_BINOMIAL, data, bytes, root, comm, with);
}
