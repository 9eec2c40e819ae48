/* Allreduce by a linear reduction to process 0, then a linear broadcast (reduce/linear.c, bcast/linear.c):
 *     T = 2 (P - 1) (alpha + m beta) + (P - 1) m gamma */
#include "internal.h"

void collwise_allreduce_linear(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                               collwise_parameters with) {
    (void)with;
    collwise_reduce_then_bcast(data, elements, op, collwise_reduce_linear, collwise_bcast_linear, comm);
}
