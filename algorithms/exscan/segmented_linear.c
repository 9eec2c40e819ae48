/* Exclusive scan along a pipeline of all processes in rank order, in n_s segments of m_s bytes; the last process only
 * receives:
 *     T = (P + n_s - 2) (alpha + m_s beta) + (P + n_s - 3) m_s gamma        if P > 2 */
#include "internal.h"

void collwise_exscan_segmented_linear(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                      collwise_parameters with) {
    collwise_pipelined_scan(data, elements, op, with.segment_bytes, 1, comm);
}
