/* MPI_Scan as MPI_Exscan and MPI_Reduce_local (GL20). MPI_Reduce_local overwrites its right operand, which is what this
 * process contributes. Without extra memory that takes two buffers and an operation that commutes; else the exclusive
 * scan goes to a buffer of its own. */
#include "mock_ups.h"

void collwise_scan_gl20_exscan_reduce_local(const char *own, char *result, size_t elements,
                                            const collwise_operation *op, MPI_Comm comm) {
    size_t bytes = elements * op->element_bytes;
    int is_first = collwise_rank_in(comm) == 0, needs_memory = own == result || !op->commutative;
    char *before = needs_memory ? collwise_message_memory(bytes, comm) : result;
    collwise_mpi_exscan(own, before, elements, op, comm);
    if (own != result && (is_first || needs_memory)) {
        collwise_copy(result, own, bytes);
    }
    if (!is_first) {
        collwise_combine(op, needs_memory ? before : own, result, elements);
    }
}
