/* A block travels by the binary digits of its distance, the ranks that it has to go ahead: in round k every process
 * packs those blocks whose digit k is 1 and sends them 2^k ranks ahead:
 *     T = ceil(log2 P) (alpha + P / 2 m beta) */
#include "internal.h"

/* Block `distance` of `blocks` still has its distance's digits from this round's on to travel. */
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
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    size_t most_packed = (size_t)(procs / 2) * block_bytes;
    char *blocks = collwise_scratch((size_t)procs * block_bytes, comm);
    char *outgoing = collwise_scratch(most_packed, comm), *incoming = collwise_scratch(most_packed, comm);
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
