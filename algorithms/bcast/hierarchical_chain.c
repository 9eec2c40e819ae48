/* Broadcast over two levels, as bcast/hierarchical.c, along a chain of the nodes' leaders, and a chain of the processes
 * of each node: for many segments. For N nodes of n processes, with alpha' and beta' within nodes, at least:
 *     T = (N + n_s - 2) (alpha + m_s beta) + (n - 1) (alpha' + m_s beta') */
#include "internal.h"

void collwise_bcast_hierarchical_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_two_level_bcast(COLLWISE_CHAIN, data, bytes, root, comm, with);
}
