/* Bruck's allgather. For held = 1, 2, 4, ... below P:
 *
 *     send the first blocks held, at most `held` of them, to the process `held` ranks behind
 *     receive as many blocks, which follow those held, from the process `held` ranks ahead
 *     at the end: rotate the blocks, which start with the process's own, into rank order
 *
 * For blocks of M bytes altogether:
 *     T = ceil(log2 P) alpha + (P - 1) / P M beta */
#include "internal.h"

/* The bytes of `count` blocks from block `first` on; block 0 follows the last one. */
static size_t bytes_of(const size_t *offsets, int procs, int first, int count) {
    int end = first + count;
    size_t until_end = end <= procs ? offsets[end] : offsets[procs] + offsets[end - procs];
    return until_end - offsets[first];
}

void collwise_allgatherv_bruck(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    char *rotated = collwise_scratch(offsets[procs], comm);
    collwise_copy(rotated, all + offsets[rank], offsets[rank + 1] - offsets[rank]);
    for (int held = 1; held < procs; held *= 2) {
        int count = held < procs - held ? held : procs - held;
        int ahead = (rank + held) % procs, behind = (rank - held + procs) % procs;
        collwise_sendrecv(rotated, bytes_of(offsets, procs, rank, count), behind,
                          rotated + bytes_of(offsets, procs, rank, held), bytes_of(offsets, procs, ahead, count), ahead,
                          comm);
    }
    size_t until_last_rank = offsets[procs] - offsets[rank];
    collwise_copy(all + offsets[rank], rotated, until_last_rank);
    collwise_copy(all, rotated + until_last_rank, offsets[rank]);
    collwise_scratch_free(rotated);
}
