/* MPI_Reduce_scatter_block as MPI_Reduce and MPI_Scatter (GL17): process 0 needs room for all blocks. */
#include "mock_ups.h"

void collwise_reduce_scatter_block_gl17_reduce_then_scatter(const char *own, char *result, size_t elements,
                                                            const collwise_operation *op, MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm);
    int bytes = (int)(elements * op->element_bytes);
    char *all = NULL;
    if (collwise_rank_in(comm) == 0) {
        all = collwise_message_memory(procs * elements * op->element_bytes, comm);
    }
    collwise_mpi_reduce(own, all, procs * elements, op, 0, comm);
    PMPI_Scatter(all, bytes, MPI_BYTE, result, bytes, MPI_BYTE, 0, comm);
}
