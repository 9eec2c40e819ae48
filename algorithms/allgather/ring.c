/* Blocks go round a ring: in each step a process passes on to the next what it got from the one before:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

#include <stdlib.h>

void collwise_allgather_ring(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_allgatherv_ring(all, offsets, comm, with);
    free(offsets);
}
