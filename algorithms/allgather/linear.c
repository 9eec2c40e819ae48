/* Allgather by a linear gather to process 0, then an unsegmented broadcast of all blocks down the binomial tree of
 * bcast/binomial.c. With c = ceil(log2 P), for P a power of two:
 *     T = (P - 1) (alpha + m beta) + (gamma(c + 1) + sum of gamma(k) for k = 2 to c) (alpha + P m beta) */
#include "internal.h"

void collwise_allgather_linear(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    collwise_gather_linear(all + (size_t)rank * block_bytes, all, block_bytes, 0, comm, with);
    collwise_bcast_binomial(all, (size_t)procs * block_bytes, 0, comm, (collwise_parameters){0});
}
