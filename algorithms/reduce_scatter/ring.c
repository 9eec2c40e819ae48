/* Reduce-scatter around a ring: each block goes once around, from the process after its owner to its owner, and every
 * process that receives it adds its contribution:
 *     T = (P - 1) (alpha + m / P (beta + gamma)) */
#include "internal.h"

void collwise_reduce_scatter_ring(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                  MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
    size_t unit = op->element_bytes;
    char *received = collwise_scratch(offsets[procs] * unit, comm);
    for (int step = 1; step < procs; step++) {
        int sent_block = (rank + procs - step) % procs, received_block = (sent_block + procs - 1) % procs;
        size_t sent_elements = offsets[sent_block + 1] - offsets[sent_block];
        size_t received_elements = offsets[received_block + 1] - offsets[received_block];
        collwise_sendrecv(data + offsets[sent_block] * unit, sent_elements * unit, next, received,
                          received_elements * unit, previous, comm);
        collwise_combine(op, received, data + offsets[received_block] * unit, received_elements);
    }
    collwise_copy(mine, data + offsets[rank] * unit, (offsets[rank + 1] - offsets[rank]) * unit);
    collwise_scratch_free(received);
}
