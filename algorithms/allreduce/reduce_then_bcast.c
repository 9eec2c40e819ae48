/* Allreduce by a reduction to process 0, then a broadcast from there. */
#include "internal.h"

void collwise_reduce_then_bcast(char *data, size_t elements, const collwise_operation *op,
                                collwise_reduce_function *reduce, collwise_bcast_function *bcast, MPI_Comm comm) {
    size_t bytes = elements * op->element_bytes;
    collwise_parameters whole = {.segment_bytes = 0};
    if (collwise_rank_in(comm) == 0) {
        char *own = collwise_scratch(bytes, comm);
        collwise_copy(own, data, bytes);
        reduce(own, data, elements, op, 0, comm, whole);
        collwise_scratch_free(own);
    } else {
        reduce(data, NULL, elements, op, 0, comm, whole);
    }
    bcast(data, bytes, 0, comm, whole);
}
