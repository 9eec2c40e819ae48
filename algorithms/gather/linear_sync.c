/* Gather with synchronisation up a linear (flat) tree, in which all other processes are children of the root: it asks
 * one process after another for its block, which the process sends in two parts. The receive of a part is started
 * before the part can arrive. Formula (13), where the parts use rendezvous, and formula (14), where they are eager:
 *     T = (P - 1) (2 alpha + m beta)        T = (P - 1) (alpha + m / 2 beta) */
#include "internal.h"

/* The size of the first part: `segment_bytes`, or half of the block for 0. */
static size_t first_part(size_t block_bytes, size_t segment_bytes) {
    return collwise_min(segment_bytes == 0 ? block_bytes / 2 : segment_bytes, block_bytes);
}

static void receive_two_parts(char *block, size_t first, size_t second, int rank, collwise_requests *requests) {
    if (first > 0) {
        collwise_start_receive(requests, block, first, rank);
    }
    collwise_send(NULL, 0, rank, requests->comm);
    if (second > 0) {
        collwise_start_receive(requests, block + first, second, rank);
    }
    collwise_wait(requests);
}

static void send_part(const char *part, size_t bytes, int root, MPI_Comm comm) {
    if (bytes > 0) {
        collwise_send(part, bytes, root, comm);
    }
}

void collwise_gather_linear_sync(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    size_t first = first_part(block_bytes, with.first_bytes);
    if (tree.parent >= 0) {
        collwise_receive(NULL, 0, root, comm);
        send_part(mine, first, root, comm);
        send_part(mine + first, block_bytes - first, root, comm);
        return;
    }
    collwise_requests requests = collwise_requests_make(2, comm);
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            receive_two_parts(all + (size_t)rank * block_bytes, first, block_bytes - first, rank, &requests);
        }
    }
    collwise_requests_free(&requests);
}
