/* Process 0 receives from one process after another, then broadcasts all blocks, unsegmented, down a binomial tree. For
 * blocks of M bytes altogether:
 *     T = (P - 1) alpha + (P - 1) / P M beta + gamma(floor(log2 P) + 1) (alpha + M beta)
 *         + sum of gamma(k) for k = 2 to floor(log2 P) - 1 times (alpha + M beta) */
#include "internal.h"

void collwise_allgatherv_linear(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    collwise_gatherv_linear(all + offsets[rank], offsets[rank + 1] - offsets[rank], all, offsets, 0, comm, with);
    collwise_bcast_binomial(all, offsets[procs], 0, comm, (collwise_parameters){0});
}
