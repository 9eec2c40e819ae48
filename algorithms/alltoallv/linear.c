/* Linear all-to-all: all receives and all sends are started at once. With P - 1 messages in a row at each process, of m
 * bytes on average:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_alltoallv_linear(const char *send, const size_t *send_offsets, char *receive,
                               const size_t *receive_offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    collwise_requests requests = collwise_requests_make(2 * procs, comm);
    for (int distance = 1; distance < procs; distance++) {
        int behind = (rank - distance + procs) % procs;
        collwise_start_receive(&requests, receive + receive_offsets[behind],
                               receive_offsets[behind + 1] - receive_offsets[behind], behind);
    }
    for (int distance = 1; distance < procs; distance++) {
        int ahead = (rank + distance) % procs;
        collwise_start_send(&requests, send + send_offsets[ahead], send_offsets[ahead + 1] - send_offsets[ahead],
                            ahead);
    }
    collwise_wait(&requests);
    collwise_requests_free(&requests);
}
