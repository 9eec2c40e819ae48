/* Sparbit: binomial broadcasts of all blocks at once. In each round every process sends all its blocks, one message
 * each, to the process `distance` ranks ahead, and the distance is halved. Blocks arrive in their places:
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

void collwise_allgather_sparbit(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    collwise_requests requests = collwise_requests_make(procs, comm);
    for (int distance = 1 << collwise_log2(procs - 1); distance > 0; distance /= 2) {
        int ahead = (rank + distance) % procs, behind = (rank - distance + procs) % procs;
        /* A process has the blocks of those 0, 2, 4, ... distances behind it, and now receives those 1, 3, 5, ...
         * distances behind. Blocks from further back than the whole ring are not sent. */
        for (int back = distance; back < procs; back += 2 * distance) {
            size_t received = (size_t)((rank - back + procs) % procs), sent = (size_t)((ahead - back + procs) % procs);
            collwise_start_receive(&requests, all + received * block_bytes, block_bytes, behind);
            collwise_start_send(&requests, all + sent * block_bytes, block_bytes, ahead);
        }
        collwise_wait(&requests);
    }
    collwise_requests_free(&requests);
}
