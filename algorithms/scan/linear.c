/* Scan along a chain: each process, in rank order, receives the sum of all before it, adds its contribution on the
 * right, and sends the new sum to the next one:
 *     T = (P - 1) (alpha + m beta + m gamma) */
#include "internal.h"

void collwise_scan_linear(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                          collwise_parameters with) {
    (void)with;
    collwise_pipelined_scan(data, elements, op, 0, 0, comm);
}
