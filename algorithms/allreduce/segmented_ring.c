/* Allreduce by a reduce-scatter around a ring, one segment of every block at a time, then an allgather of whole blocks
 * (ring_allreduce.c). With n_s segments in a block:
 *     T = (P - 1) ((n_s + 1) alpha + 2 m / P beta + m / P gamma) */
#include "internal.h"

void collwise_allreduce_segmented_ring(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                       collwise_parameters with) {
    collwise_ring_allreduce(data, elements, op, with.segment_bytes, comm);
}
