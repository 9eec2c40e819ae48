/* Bruck's all-to-all: a block has to travel its distance, the number of ranks between its sender and its receiver. For
 * each binary digit of the distances, 1, 2, 4, ...:
 *
 *     pack the blocks whose distance has that digit
 *     send them to the process `digit` ranks ahead, and receive as many from the one `digit` ranks behind
 *
 *     T = ceil(log2 P) (alpha + P / 2 m beta) */
#include "internal.h"

/* Packs those of the blocks, which are in the order of their distances, whose distance has the digit. */
static size_t pack(char *packed, const char *blocks, size_t block_bytes, int procs, int digit) {
    size_t bytes = 0;
    for (int distance = digit; distance < procs; distance++) {
        if ((distance & digit) != 0) {
            collwise_copy(packed + bytes, blocks + (size_t)distance * block_bytes, block_bytes);
            bytes += block_bytes;
        }
    }
    return bytes;
}

static void unpack(const char *packed, char *blocks, size_t block_bytes, int procs, int digit) {
    size_t bytes = 0;
    for (int distance = digit; distance < procs; distance++) {
        if ((distance & digit) != 0) {
            collwise_copy(blocks + (size_t)distance * block_bytes, packed + bytes, block_bytes);
            bytes += block_bytes;
        }
    }
}

void collwise_alltoall_bruck(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                             collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    size_t max_packed = (size_t)(procs / 2) * block_bytes;
    char *blocks = collwise_scratch((size_t)procs * block_bytes, comm);
    char *outgoing = collwise_scratch(max_packed, comm), *incoming = collwise_scratch(max_packed, comm);
    for (int distance = 1; distance < procs; distance++) {
        int destination = (rank + distance) % procs;
        collwise_copy(blocks + (size_t)distance * block_bytes, send + (size_t)destination * block_bytes, block_bytes);
    }
    for (int digit = 1; digit < procs; digit *= 2) {
        int ahead = (rank + digit) % procs, behind = (rank - digit + procs) % procs;
        size_t bytes = pack(outgoing, blocks, block_bytes, procs, digit);
        collwise_sendrecv(outgoing, bytes, ahead, incoming, bytes, behind, comm);
        unpack(incoming, blocks, block_bytes, procs, digit);
    }
    for (int distance = 1; distance < procs; distance++) {
        int source = (rank - distance + procs) % procs;
        collwise_copy(receive + (size_t)source * block_bytes, blocks + (size_t)distance * block_bytes, block_bytes);
    }
    collwise_scratch_free(blocks);
    collwise_scratch_free(outgoing);
    collwise_scratch_free(incoming);
}
