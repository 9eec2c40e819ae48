/* Allreduce by a reduction up a binomial tree to process 0, then a broadcast down one, neither of them segmented
 * (reduce/binomial.c, bcast/binomial.c). For P a power of two:
 *     T = 2 log2 P (alpha + m beta) + log2 P m gamma */
#include "internal.h"

void collwise_allreduce_non_overlapping(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                        collwise_parameters with) {
    (void)with;
    collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
}
