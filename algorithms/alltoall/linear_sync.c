/* All-to-all by exchanges with the processes 1, 2, ... ranks away, of which at most R, max_requests, are under way at a
 * time; the next one starts when the oldest has ended:
 *     T = ceil((P - 1) / R) gamma(R + 1) (alpha + m beta) */
#include "internal.h"

#include <stdlib.h>

void collwise_alltoall_linear_sync(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                   collwise_parameters with) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    int window = with.max_requests < procs ? with.max_requests : procs - 1;
    collwise_requests *exchanges = collwise_allocate((size_t)window * sizeof *exchanges, comm);
    for (int i = 0; i < window; i++) {
        exchanges[i] = collwise_requests_make(2, comm);
    }
    for (int distance = 1; distance < procs; distance++) {
        int ahead = (rank + distance) % procs, behind = (rank - distance + procs) % procs;
        collwise_requests *oldest = &exchanges[distance % window];
        collwise_wait(oldest);
        collwise_start_receive(oldest, receive + (size_t)behind * block_bytes, block_bytes, behind);
        collwise_start_send(oldest, send + (size_t)ahead * block_bytes, block_bytes, ahead);
    }
    for (int i = 0; i < window; i++) {
        collwise_wait(&exchanges[i]);
        collwise_requests_free(&exchanges[i]);
    }
    free(exchanges);
}
