/* Allgather by exchanges with the two neighbours in turn: a process first exchanges its own block, then always the two
 * blocks that it received last (allgatherv/neighbor_exchange.c):
 *     T = P / 2 alpha + (P - 1) m beta */
#include "internal.h"

void collwise_allgather_neighbor_exchange(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_allgatherv_neighbor_exchange(all, offsets, comm, with);
    collwise_sizes_free(offsets);
}
