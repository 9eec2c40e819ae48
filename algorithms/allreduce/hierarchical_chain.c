/* Allreduce over two levels, as allreduce/hierarchical.c, along chains of the processes of each node and of the nodes'
 * leaders: for many segments. For one segment and N nodes of n processes, with alpha' and beta' within nodes:
 *     T = (n - 1) (2 alpha' + 2 m beta' + m gamma) + (N - 1) (2 alpha + 2 m beta + m gamma) */
#include "internal.h"

void collwise_allreduce_hierarchical_chain(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                           collwise_parameters with) {
    collwise_two_level_allreduce(COLLWISE_CHAIN, data, elements, op, comm, with);
}
