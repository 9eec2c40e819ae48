/* Scan along a pipeline of all processes in rank order, in n_s segments of m_s bytes:
 *     T = (P + n_s - 2) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

void collwise_scan_segmented_linear(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_pipelined_scan(data, elements, op, with.segment_bytes, 0, comm);
}
