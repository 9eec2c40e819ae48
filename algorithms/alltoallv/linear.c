/* All receives and all sends are started at once. For blocks of m bytes on average:
 *     T = gamma(P) (alpha + m beta) */
#include "internal.h"

void collwise_alltoallv_linear(const char *send, const size_t *send_offsets, char *receive,
                               const size_t *receive_offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
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
