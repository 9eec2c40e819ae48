/* Reduction over two levels, as reduce/hierarchical.c, along chains of the processes of each node and of the nodes'
 * leaders: for many segments. For N nodes of n processes, with alpha' and beta' within nodes, at least:
 *     T = (n - 1) (alpha' + m_s beta' + m_s gamma) + (N + n_s - 2) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_reduce_hierarchical_chain(const char *data, char *result, size_t elements, const collwise_operation *op,
                                        int root, MPI_Comm comm, collwise_parameters with) {
    collwise_two_level_reduce(COLLWISE_CHAIN, data, result, elements, op, root, comm, with);
}
