/* MPI_Reduce as MPI_Allreduce (GL14): all but the root need room for the result. */
#include "mock_ups.h"

void collwise_reduce_gl14_allreduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                                    int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    if (collwise_rank_in(comm) != root) {
        result = collwise_message_memory(elements * op->element_bytes, comm);
    }
    collwise_mpi_allreduce(data, result, elements, op, comm);
}
