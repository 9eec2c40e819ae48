/* In round k pairs of processes 2^k ranks apart signal each other; those beyond the last power of two report to a
 * partner before and are released by it after. For a power of two, and else:
 *     T = log2 P alpha        T = (floor(log2 P) + 2) alpha */
#include "internal.h"

void collwise_barrier_recursive_doubling(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int core = 1 << collwise_log2(procs);
    if (rank >= core) {
        collwise_signal(rank - core, comm);
        collwise_await(rank - core, comm);
        return;
    }
    int has_extra = rank + core < procs;
    if (has_extra) {
        collwise_await(rank + core, comm);
    }
    for (int distance = 1; distance < core; distance *= 2) {
        int partner = rank ^ distance;
        collwise_signal_and_await(partner, partner, comm);
    }
    if (has_extra) {
        collwise_signal(rank + core, comm);
    }
}
