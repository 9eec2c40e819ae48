/* Process 0 receives from one process after another, then broadcasts all blocks, unsegmented, down a binomial tree:
 *     T = (P - 1) (alpha + m beta) + gamma(floor(log2 P) + 1) (alpha + P m beta)
 *         + sum of gamma(k) for k = 2 to floor(log2 P) - 1 times (alpha + P m beta) */
#include "internal.h"

void collwise_allgather_linear(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    collwise_gather_linear(all + (size_t)rank * block_bytes, all, block_bytes, 0, comm, with);
    collwise_bcast_binomial(all, (size_t)procs * block_bytes, 0, comm, (collwise_parameters){0});
}
