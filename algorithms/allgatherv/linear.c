/* Process 0 receives from one process after another, then broadcasts all blocks, unsegmented, down a binomial tree. For
 * blocks of M bytes altogether:
 *     T = (P - 1) alpha + (P - 1) / P M beta + gamma(floor(log2 P) + 1) (alpha + M beta)
 *         + sum of gamma(k) for k = 2 to floor(log2 P) - 1 times (alpha + M beta) */
#include "internal.h"

static void gather(char *all, const size_t *offsets, MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, 0, comm, 0);
    int rank = tree.virtual_rank;
    if (rank != 0) {
        collwise_send(all + offsets[rank], offsets[rank + 1] - offsets[rank], 0, comm);
        return;
    }
    for (int source = 1; source < tree.procs; source++) {
        collwise_receive(all + offsets[source], offsets[source + 1] - offsets[source], source, comm);
    }
}

void collwise_allgatherv_linear(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    int procs;
    MPI_Comm_size(comm, &procs);
    gather(all, offsets, comm);
    collwise_bcast_binomial(all, offsets[procs], 0, comm, with);
}
