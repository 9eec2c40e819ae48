/* Bruck's allgather: in each round a process doubles the number of its blocks by those of the process that many ranks
 * ahead; at the end it rotates the blocks into rank order (allgatherv/bruck.c):
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

void collwise_allgather_bruck(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_allgatherv_bruck(all, offsets, comm, with);
    collwise_sizes_free(offsets);
}
