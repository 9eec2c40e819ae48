/* Processes exchange blocks with their two neighbours by turns: their own first, then always the two that came last.
 * For blocks of M bytes altogether:
 *     T = P / 2 alpha + (P - 1) / P M beta */
#include "internal.h"

/* The neighbour of a step: 2k and 2k + 1 are together in even steps, 2k - 1 and 2k in odd ones. */
static int neighbor(int procs, int rank, int step) {
    return step % 2 == rank % 2 ? (rank + 1) % procs : (rank - 1 + procs) % procs;
}

/* Blocks travel in pairs 2k and 2k + 1. A process gets the pairs from here and there of its own by turns, ever further
 * away: the one on the side of the step's neighbour in odd steps, and on the other side in even ones. */
static int pair_after(int procs, int rank, int step) {
    int pairs = procs / 2, distance = (step + 1) / 2;
    return (rank / 2 + (step % 2 == rank % 2 ? distance : pairs - distance)) % pairs;
}

void collwise_allgatherv_neighbor_exchange(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int first = neighbor(procs, rank, 0);
    collwise_sendrecv(all + offsets[rank], offsets[rank + 1] - offsets[rank], first, all + offsets[first],
                      offsets[first + 1] - offsets[first], first, comm);
    for (int step = 1; step < procs / 2; step++) {
        int other = neighbor(procs, rank, step);
        int sent = 2 * pair_after(procs, rank, step - 1), received = 2 * pair_after(procs, rank, step);
        collwise_sendrecv(all + offsets[sent], offsets[sent + 2] - offsets[sent], other, all + offsets[received],
                          offsets[received + 2] - offsets[received], other, comm);
    }
}
