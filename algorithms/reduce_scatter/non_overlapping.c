/* Reduce-scatter by a reduction of all blocks to process 0, up the in-order binomial tree of reduce/binomial.c, then a
 * linear scatter:
 *     T = ceil(log2 P) (alpha + m beta + m gamma) + (P - 1) (alpha + m / P beta) */
#include "internal.h"

void collwise_reduce_scatter_non_overlapping(char *data, const size_t *offsets, char *mine,
                                             const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    size_t my_bytes = (offsets[rank + 1] - offsets[rank]) * op->element_bytes;
    char *sum = rank == 0 ? collwise_scratch(offsets[procs] * op->element_bytes, comm) : NULL;
    collwise_reduce_binomial(data, sum, offsets[procs], op, 0, comm, (collwise_parameters){0});
    if (rank > 0) {
        collwise_receive(mine, my_bytes, 0, comm);
        return;
    }
    collwise_copy(mine, sum, my_bytes);
    for (int other = 1; other < procs; other++) {
        collwise_send(sum + offsets[other] * op->element_bytes,
                      (offsets[other + 1] - offsets[other]) * op->element_bytes, other, comm);
    }
    collwise_scratch_free(sum);
}
