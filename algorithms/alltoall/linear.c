/* Linear all-to-all: all receives and all sends are started at once. With P - 1 messages in a row at each process:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_alltoall_linear(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                              collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_alltoallv_linear(send, offsets, receive, offsets, comm, with);
    collwise_sizes_free(offsets);
}
