/* Allgather by a linear gather to process 0, then an unsegmented broadcast of all blocks down the binomial tree of
 * bcast/binomial.c. For blocks of M bytes altogether, with c = ceil(log2 P), for P a power of two:
 *     T = (P - 1) alpha + (P - 1) / P M beta + (gamma(c + 1) + sum of gamma(k) for k = 2 to c) (alpha + M beta) */
#include "internal.h"

void collwise_allgatherv_linear(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    int rank = collwise_rank_in(comm);
    collwise_gatherv_linear(all + offsets[rank], offsets[rank + 1] - offsets[rank], all, offsets, 0, comm, with);
    collwise_bcast_binomial(all, offsets[collwise_size_of(comm)], 0, comm, (collwise_parameters){0});
}
