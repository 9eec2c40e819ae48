/* MPI_Allreduce as MPI_Reduce and MPI_Bcast (GL5), in the receive buffer. */
#include "mock_ups.h"

void collwise_allreduce_gl5_reduce_bcast(const char *own, char *result, size_t elements, const collwise_operation *op,
                                         MPI_Comm comm) {
    collwise_mpi_reduce(own, result, elements, op, 0, comm);
    PMPI_Bcast(result, (int)(elements * op->element_bytes), MPI_BYTE, 0, comm);
}
