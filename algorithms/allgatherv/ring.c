/* Allgather around a ring: in each step a process sends to the next one the block that it received last, first its own.
 * For blocks of M bytes altogether, the largest of m bytes, between these two:
 *     T = (P - 1) alpha + (P - 1) / P M beta        T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_allgatherv_ring(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    int next = (rank + 1) % procs, previous = (rank - 1 + procs) % procs;
    for (int step = 0; step < procs - 1; step++) {
        int sent = (rank - step + procs) % procs, received = (previous - step + procs) % procs;
        collwise_sendrecv(all + offsets[sent], offsets[sent + 1] - offsets[sent], next, all + offsets[received],
                          offsets[received + 1] - offsets[received], previous, comm);
    }
}
