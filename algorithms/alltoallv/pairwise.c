/* Pairwise exchange: in step i every process sends to the one i ranks ahead and receives from the one i ranks behind.
 * For blocks of m bytes on average, at least:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_alltoallv_pairwise(const char *send, const size_t *send_offsets, char *receive,
                                 const size_t *receive_offsets, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    for (int distance = 1; distance < procs; distance++) {
        int ahead = (rank + distance) % procs, behind = (rank - distance + procs) % procs;
        collwise_sendrecv(send + send_offsets[ahead], send_offsets[ahead + 1] - send_offsets[ahead], ahead,
                          receive + receive_offsets[behind], receive_offsets[behind + 1] - receive_offsets[behind],
                          behind, comm);
    }
}
