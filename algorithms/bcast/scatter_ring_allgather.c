/* Broadcast by a binomial scatter of the message's P equal parts (scatter_message.c), then an allgather around a ring:
 * in each of P - 1 steps a process sends to the next one the part that it received last, first its own:
 *     T = (ceil(log2 P) + P - 1) alpha + 2 (P - 1) / P m beta */
#include "internal.h"

void collwise_bcast_scatter_ring_allgather(char *data, size_t bytes, int root, MPI_Comm comm,
                                           collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm), virtual_rank = (rank - root + procs) % procs;
    int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
    collwise_scatter_message(data, bytes, root, comm);
    for (int step = 0; step < procs - 1; step++) {
        int sent_index = (virtual_rank - step + procs) % procs, received_index = (sent_index + procs - 1) % procs;
        collwise_part sent = collwise_equal_part(bytes, procs, sent_index);
        collwise_part received = collwise_equal_part(bytes, procs, received_index);
        collwise_sendrecv(data + sent.first, sent.count, next, data + received.first, received.count, previous, comm);
    }
}
