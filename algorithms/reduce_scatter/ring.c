/* Each block goes once round the ring, from the process after its owner to its owner, and every process that it comes
 * to adds its contribution:
 *     T = (P - 1) (alpha + m / P (beta + gamma)) */
#include "internal.h"

void collwise_reduce_scatter_ring(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                  MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
    char *received = collwise_scratch(offsets[procs] * op->element_bytes, comm);
    for (int step = 1; step < procs; step++) {
        int leaves = (rank + procs - step) % procs, comes = (leaves + procs - 1) % procs;
        size_t elements = offsets[comes + 1] - offsets[comes];
        collwise_sendrecv(data + offsets[leaves] * op->element_bytes,
                          (offsets[leaves + 1] - offsets[leaves]) * op->element_bytes, next, received,
                          elements * op->element_bytes, previous, comm);
        collwise_combine(op, received, data + offsets[comes] * op->element_bytes, elements);
    }
    collwise_copy(mine, data + offsets[rank] * op->element_bytes,
                  (offsets[rank + 1] - offsets[rank]) * op->element_bytes);
    collwise_scratch_free(received);
}
