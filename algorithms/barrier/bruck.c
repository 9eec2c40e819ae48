/* Dissemination barrier: in round k every process signals the one 2^k ranks ahead and waits for the one 2^k behind:
 *     T = ceil(log2 P) alpha */
#include "internal.h"

void collwise_barrier_bruck(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    for (int distance = 1; distance < procs; distance *= 2) {
        int ahead = (rank + distance) % procs, behind = (rank - distance + procs) % procs;
        collwise_signal_and_await(ahead, behind, comm);
    }
}
