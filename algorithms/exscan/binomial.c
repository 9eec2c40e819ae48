/* Exclusive scan up and down a binomial tree (scan/binomial.c), which also keeps the sum of all ranks before each one:
 *     T = 2 floor(log2 P) (alpha + m beta + 2 m gamma)        at most */
#include "internal.h"

void collwise_exscan_binomial(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                              collwise_parameters with) {
    (void)with;
    collwise_binomial_scan(data, elements, op, 1, comm);
}
