/* Reduction up a linear (flat) tree, in which all other processes are children of the root: it receives from one after
 * another, the last rank first, and combines:
 *     T = (P - 1) (alpha + m beta + m gamma) */
#include "internal.h"

static void receive_and_combine(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                                MPI_Comm comm) {
    int last = collwise_size_of(comm) - 1;
    size_t bytes = elements * op->element_bytes;
    char *received = collwise_scratch(bytes, comm);
    if (root == last) {
        collwise_copy(result, data, bytes);
    } else {
        collwise_receive(result, bytes, last, comm);
    }
    for (int rank = last - 1; rank >= 0; rank--) {
        if (rank != root) {
            collwise_receive(received, bytes, rank, comm);
        }
        collwise_combine(op, rank == root ? data : received, result, elements);
    }
    collwise_scratch_free(received);
}

void collwise_reduce_linear(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                            MPI_Comm comm, collwise_parameters with) {
    (void)with;
    if (collwise_rank_in(comm) == root) {
        receive_and_combine(data, result, elements, op, root, comm);
    } else {
        collwise_send(data, elements * op->element_bytes, root, comm);
    }
}
