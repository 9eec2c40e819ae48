/* Double-ring barrier: a signal goes around the ring twice; a process may leave when it has seen it the second time:
 *     T = 2 P alpha */
#include "internal.h"

void collwise_barrier_double_ring(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    int next = (rank + 1) % procs, previous = (rank - 1 + procs) % procs;
    for (int round = 0; round < 2; round++) {
        if (rank == 0) {
            collwise_signal(next, comm);
            collwise_await(previous, comm);
        } else {
            collwise_await(previous, comm);
            collwise_signal(next, comm);
        }
    }
}
