/* Exclusive scan by recursive doubling (scan/recursive_doubling.c), whose result starts empty:
 *     T = ceil(log2 P) (alpha + m beta) + (2 ceil(log2 P) - 1) m gamma */
#include "internal.h"

void collwise_exscan_recursive_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                        collwise_parameters with) {
    (void)with;
    collwise_doubling_scan(data, elements, op, 1, comm);
}
