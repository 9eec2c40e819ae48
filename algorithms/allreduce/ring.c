/* Allreduce by a reduce-scatter around a ring, then an allgather around it (ring_allreduce.c):
 *     T = 2 (P - 1) (alpha + m / P beta) + (P - 1) / P m gamma */
#include "internal.h"

void collwise_allreduce_ring(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                             collwise_parameters with) {
    (void)with;
    collwise_ring_allreduce(data, elements, op, 0, comm);
}
