/* MPI_Reduce_scatter_block as MPI_Reduce_scatter (GL18). */
#include "mock_ups.h"

void collwise_reduce_scatter_block_gl18_reduce_scatter(const char *own, char *result, size_t elements,
                                                       const collwise_operation *op, MPI_Comm comm) {
    int procs = collwise_size_of(comm), *counts = collwise_integer_memory((size_t)procs, comm);
    for (int i = 0; i < procs; i++) {
        counts[i] = (int)elements;
    }
    collwise_mpi_reduce_scatter(own, result, counts, op, comm);
}
