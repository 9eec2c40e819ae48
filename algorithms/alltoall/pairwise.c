/* Pairwise exchange: in step i every process sends to the one i ranks ahead and receives from the one i ranks behind:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_alltoall_pairwise(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                collwise_parameters with) {
    size_t *offsets = collwise_equal_offsets(block_bytes, comm);
    collwise_alltoallv_pairwise(send, offsets, receive, offsets, comm, with);
    collwise_sizes_free(offsets);
}
