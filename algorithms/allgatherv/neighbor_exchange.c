/* Allgather by exchanges with the two neighbours in turn: a process first exchanges its own block, then always the two
 * blocks that it received last. For blocks of M bytes altogether:
 *     T = P / 2 alpha + (P - 1) / P M beta */
#include "internal.h"

/* Ranks 2k and 2k + 1 are partners in even steps, 2k - 1 and 2k in odd ones. */
static int neighbor(int procs, int rank, int step) {
    return step % 2 == rank % 2 ? (rank + 1) % procs : (rank - 1 + procs) % procs;
}

/* The pair of blocks, 2k and 2k + 1, that a process has received last after a step. It receives the pairs above and
 * below its own in turn, at growing distances: that on the side of the step's neighbour in odd steps, and that on the
 * other side in even steps. */
static int last_pair(int procs, int rank, int step) {
    int pairs = procs / 2, distance = (step + 1) / 2;
    return (rank / 2 + (step % 2 == rank % 2 ? distance : pairs - distance)) % pairs;
}

void collwise_allgatherv_neighbor_exchange(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    int first = neighbor(procs, rank, 0);
    collwise_sendrecv(all + offsets[rank], offsets[rank + 1] - offsets[rank], first, all + offsets[first],
                      offsets[first + 1] - offsets[first], first, comm);
    for (int step = 1; step < procs / 2; step++) {
        int other = neighbor(procs, rank, step);
        int sent = 2 * last_pair(procs, rank, step - 1), received = 2 * last_pair(procs, rank, step);
        collwise_sendrecv(all + offsets[sent], offsets[sent + 2] - offsets[sent], other, all + offsets[received],
                          offsets[received + 2] - offsets[received], other, comm);
    }
}
