/* The root receives from one process after another, the last first, and combines:
 *     T = (P - 1) (alpha + m beta + m gamma) */
#include "internal.h"

static void combine_all(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                        MPI_Comm comm) {
    int procs;
    MPI_Comm_size(comm, &procs);
    size_t bytes = elements * op->element_bytes;
    char *arrived = collwise_scratch(bytes, comm);
    if (root == procs - 1) {
        collwise_copy(result, data, bytes);
    } else {
        collwise_receive(result, bytes, procs - 1, comm);
    }
    for (int rank = procs - 2; rank >= 0; rank--) {
        if (rank != root) {
            collwise_receive(arrived, bytes, rank, comm);
        }
        collwise_combine(op, rank == root ? data : arrived, result, elements);
    }
    collwise_scratch_free(arrived);
}

void collwise_reduce_linear(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                            MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == root) {
        combine_all(data, result, elements, op, root, comm);
    } else {
        collwise_send(data, elements * op->element_bytes, root, comm);
    }
}
