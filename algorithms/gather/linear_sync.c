/* The root asks one process after another for its block, which comes in two parts; a receive is posted for each
 * before it can arrive. With rendezvous and with eager parts, formulas (13) and (14):
 *     T = (P - 1) (2 alpha + m beta)        T = (P - 1) (alpha + m / 2 beta) */
#include "internal.h"

/* The first `segment_bytes` of a block, or half of it for 0. */
static size_t first_part(size_t block_bytes, size_t segment_bytes) {
    return collwise_least(segment_bytes == 0 ? block_bytes / 2 : segment_bytes, block_bytes);
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
    size_t first = first_part(block_bytes, with.segment_bytes);
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
