/* Allgather by recursive doubling: in each round pairs of processes, 1, 2, 4, ... ranks apart, exchange all their
 * blocks:
 *     T = log2 P alpha + (P - 1) m beta */
#include "internal.h"

void collwise_allgather_recursive_doubling(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    for (int held = 1; held < procs; held *= 2) {
        int partner = rank ^ held;
        /* Each has `held` consecutive blocks, the first of which is a multiple of `held`. */
        size_t mine = (size_t)(rank - rank % held), theirs = (size_t)(partner - partner % held);
        size_t bytes = (size_t)held * block_bytes;
        collwise_sendrecv(all + mine * block_bytes, bytes, partner, all + theirs * block_bytes, bytes, partner, comm);
    }
}
