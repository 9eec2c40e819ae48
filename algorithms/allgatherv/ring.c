/* Blocks go round a ring: in each step a process passes on to the next what it got from the one before. For blocks of
 * M bytes altogether, the largest of m bytes, between these two:
 *     T = (P - 1) alpha + (P - 1) / P M beta        T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_allgatherv_ring(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int next = (rank + 1) % procs, previous = (rank - 1 + procs) % procs;
    for (int step = 0; step < procs - 1; step++) {
        int sent = (rank - step + procs) % procs, received = (previous - step + procs) % procs;
        collwise_sendrecv(all + offsets[sent], offsets[sent + 1] - offsets[sent], next, all + offsets[received],
                          offsets[received + 1] - offsets[received], previous, comm);
    }
}
