/* A binomial scatter of the message's P blocks, which then go round a ring:
 *     T = (ceil(log2 P) + P - 1) alpha + 2 (P - 1) / P m beta */
#include "internal.h"

void collwise_bcast_scatter_ring_allgather(char *data, size_t bytes, int root, MPI_Comm comm,
                                           collwise_parameters with) {
    (void)with;
    collwise_tree ring = collwise_tree_of(COLLWISE_CHAIN, root, comm, 0);
    int procs = ring.procs, place = ring.virtual_rank;
    int next = (root + place + 1) % procs, previous = (root + place + procs - 1) % procs;
    collwise_scatter_message(data, bytes, root, comm);
    for (int step = 0; step < procs - 1; step++) {
        int out = (place - step + procs) % procs, in = (out + procs - 1) % procs;
        size_t out_start = collwise_block_start(bytes, procs, out), in_start = collwise_block_start(bytes, procs, in);
        collwise_sendrecv(data + out_start, collwise_block_start(bytes, procs, out + 1) - out_start, next,
                          data + in_start, collwise_block_start(bytes, procs, in + 1) - in_start, previous, comm);
    }
}
