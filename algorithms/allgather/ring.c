/* Allgather around a ring: in each step a process sends to the next one the block that it received last, first its own
 * (allgatherv/ring.c):
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_allgather_ring(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_allgatherv_ring(all, offsets, comm, with);
    collwise_sizes_free(offsets);
}
