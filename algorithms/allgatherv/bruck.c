/* In each round every process doubles what it has, by the blocks of the process that many ranks ahead; at the end it
 * rotates the blocks into rank order. For blocks of M bytes altogether:
 *     T = ceil(log2 P) alpha + (P - 1) / P M beta */
#include "internal.h"

/* How many bytes `count` blocks have, from block `first` on and around. */
static size_t span(const size_t *offsets, int procs, int first, int count) {
    int end = first + count;
    size_t until_end = end <= procs ? offsets[end] : offsets[procs] + offsets[end - procs];
    return until_end - offsets[first];
}

void collwise_allgatherv_bruck(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    char *rotated = collwise_scratch(offsets[procs], comm);
    collwise_copy(rotated, all + offsets[rank], offsets[rank + 1] - offsets[rank]);
    for (int held = 1; held < procs; held *= 2) {
        int count = held < procs - held ? held : procs - held;
        int ahead = (rank + held) % procs, behind = (rank - held + procs) % procs;
        collwise_sendrecv(rotated, span(offsets, procs, rank, count), behind,
                          rotated + span(offsets, procs, rank, held), span(offsets, procs, ahead, count), ahead, comm);
    }
    size_t until_last_rank = offsets[procs] - offsets[rank];
    collwise_copy(all + offsets[rank], rotated, until_last_rank);
    collwise_copy(all, rotated + until_last_rank, offsets[rank]);
    collwise_scratch_free(rotated);
}
