/* Exclusive scan along a chain: each process, in rank order, receives the sum of all before it, adds its contribution
 * on the right, and sends the new sum to the next one; the last process only receives:
 *     T = (P - 1) (alpha + m beta) + (P - 2) m gamma */
#include "internal.h"

void collwise_exscan_linear(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                            collwise_parameters with) {
    (void)with;
    collwise_pipelined_scan(data, elements, op, 0, 1, comm);
}
