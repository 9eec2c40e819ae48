/* The root asks one process after another for its block, which comes in two parts; a receive is posted for each
 * before it can arrive. With rendezvous and with eager parts, formulas (13) and (14):
 *     T = (P - 1) (2 alpha + m beta)        T = (P - 1) (alpha + m / 2 beta) */
#include "internal.h"

#include <stdlib.h>

/* The first `segment_bytes` of a block, or half of it for 0. */
static size_t first_part(size_t block_bytes, size_t segment_bytes) {
    size_t first = segment_bytes == 0 ? block_bytes / 2 : segment_bytes;
    return first < block_bytes ? first : block_bytes;
}

/* Posts the receives of one part, a piece each; returns how many. */
static int post_receives(char *part, size_t bytes, int rank, MPI_Comm comm, MPI_Request *requests) {
    int pieces = (int)collwise_segment_count(bytes, COLLWISE_PIECE_BYTES);
    for (int i = 0; i < pieces; i++) {
        MPI_Irecv(part + (size_t)i * COLLWISE_PIECE_BYTES,
                  (int)collwise_segment_length(bytes, COLLWISE_PIECE_BYTES, (size_t)i), MPI_BYTE, rank, COLLWISE_TAG,
                  comm, &requests[i]);
    }
    return pieces;
}

static void receive_two_parts(char *block, size_t first, size_t second, int rank, MPI_Comm comm,
                              MPI_Request *requests) {
    int posted = post_receives(block, first, rank, comm, requests);
    MPI_Send(NULL, 0, MPI_BYTE, rank, COLLWISE_TAG, comm);
    posted += post_receives(block + first, second, rank, comm, requests + posted);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
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
        MPI_Recv(NULL, 0, MPI_BYTE, root, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
        send_part(mine, first, root, comm);
        send_part(mine + first, block_bytes - first, root, comm);
        return;
    }
    MPI_Request *requests = collwise_allocate((block_bytes / COLLWISE_PIECE_BYTES + 3) * sizeof *requests, comm);
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            receive_two_parts(all + (size_t)rank * block_bytes, first, block_bytes - first, rank, comm, requests);
        }
    }
    free(requests);
}
