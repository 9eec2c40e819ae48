#include "internal.h"

#include <stdlib.h>

/* A message of no bytes is one piece. */
static size_t piece_count(size_t bytes) { return bytes == 0 ? 1 : collwise_segment_count(bytes, COLLWISE_PIECE_BYTES); }

static int piece_length(size_t bytes, size_t index) {
    return (int)collwise_segment_length(bytes, COLLWISE_PIECE_BYTES, index);
}

void collwise_send(const char *data, size_t bytes, int destination, MPI_Comm comm) {
    for (size_t i = 0; i < piece_count(bytes); i++) {
        MPI_Send(data + i * COLLWISE_PIECE_BYTES, piece_length(bytes, i), MPI_BYTE, destination, COLLWISE_TAG, comm);
    }
}

void collwise_receive(char *data, size_t bytes, int source, MPI_Comm comm) {
    for (size_t i = 0; i < piece_count(bytes); i++) {
        MPI_Recv(data + i * COLLWISE_PIECE_BYTES, piece_length(bytes, i), MPI_BYTE, source, COLLWISE_TAG, comm,
                 MPI_STATUS_IGNORE);
    }
}

void collwise_signal(int destination, MPI_Comm comm) {
    const char token = 0;
    collwise_send(&token, COLLWISE_TOKEN_BYTES, destination, comm);
}

void collwise_await(int source, MPI_Comm comm) {
    char token;
    collwise_receive(&token, COLLWISE_TOKEN_BYTES, source, comm);
}

void collwise_signal_and_await(int destination, int source, MPI_Comm comm) {
    const char sent = 0;
    char received;
    collwise_sendrecv(&sent, COLLWISE_TOKEN_BYTES, destination, &received, COLLWISE_TOKEN_BYTES, source, comm);
}

/* Non-blocking all through, so that pieces of the one direction never wait for those of the other. */
static void sendrecv_in_pieces(const char *send, size_t send_bytes, int destination, char *receive,
                               size_t receive_bytes, int source, MPI_Comm comm) {
    collwise_requests requests = collwise_requests_make(4, comm);
    collwise_start_receive(&requests, receive, receive_bytes, source);
    collwise_start_send(&requests, send, send_bytes, destination);
    collwise_wait(&requests);
    collwise_requests_free(&requests);
}

void collwise_sendrecv(const char *send, size_t send_bytes, int destination, char *receive, size_t receive_bytes,
                       int source, MPI_Comm comm) {
    if (send_bytes > COLLWISE_PIECE_BYTES || receive_bytes > COLLWISE_PIECE_BYTES) {
        sendrecv_in_pieces(send, send_bytes, destination, receive, receive_bytes, source, comm);
        return;
    }
    MPI_Sendrecv(send, (int)send_bytes, MPI_BYTE, destination, COLLWISE_TAG, receive, (int)receive_bytes, MPI_BYTE,
                 source, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
}

collwise_requests collwise_requests_make(int room, MPI_Comm comm) {
    return (collwise_requests){
        .list = collwise_allocate((size_t)room * sizeof(MPI_Request), comm), .room = room, .comm = comm};
}

static MPI_Request *next(collwise_requests *requests) {
    if (requests->count == requests->room) {
        int room = 2 * requests->room + 4;
        MPI_Request *longer = collwise_allocate((size_t)room * sizeof *longer, requests->comm);
        for (int i = 0; i < requests->count; i++) {
            longer[i] = requests->list[i];
        }
        free(requests->list);
        requests->list = longer;
        requests->room = room;
    }
    return &requests->list[requests->count++];
}

void collwise_start_send(collwise_requests *requests, const char *data, size_t bytes, int destination) {
    for (size_t i = 0; i < piece_count(bytes); i++) {
        MPI_Isend(data + i * COLLWISE_PIECE_BYTES, piece_length(bytes, i), MPI_BYTE, destination, COLLWISE_TAG,
                  requests->comm, next(requests));
    }
}

void collwise_start_synchronous_send(collwise_requests *requests, const char *data, size_t bytes, int destination) {
    for (size_t i = 0; i < piece_count(bytes); i++) {
        MPI_Issend(data + i * COLLWISE_PIECE_BYTES, piece_length(bytes, i), MPI_BYTE, destination, COLLWISE_TAG,
                   requests->comm, next(requests));
    }
}

void collwise_start_receive(collwise_requests *requests, char *data, size_t bytes, int source) {
    for (size_t i = 0; i < piece_count(bytes); i++) {
        MPI_Irecv(data + i * COLLWISE_PIECE_BYTES, piece_length(bytes, i), MPI_BYTE, source, COLLWISE_TAG,
                  requests->comm, next(requests));
    }
}

void collwise_wait(collwise_requests *requests) {
    MPI_Waitall(requests->count, requests->list, MPI_STATUSES_IGNORE);
    requests->count = 0;
}

void collwise_requests_free(collwise_requests *requests) {
    free(requests->list);
    requests->list = NULL;
}

size_t collwise_segment_bytes(size_t segment_bytes) {
    return segment_bytes == 0 ? COLLWISE_PIECE_BYTES : collwise_least(segment_bytes, COLLWISE_PIECE_BYTES);
}

size_t collwise_segment_count(size_t bytes, size_t segment_bytes) {
    size_t segment = collwise_segment_bytes(segment_bytes);
    return bytes / segment + (bytes % segment != 0);
}

size_t collwise_segment_length(size_t bytes, size_t segment_bytes, size_t index) {
    size_t segment = collwise_segment_bytes(segment_bytes);
    return collwise_least(segment, bytes - index * segment);
}

collwise_part collwise_equal_part(size_t size, size_t parts, size_t index) {
    size_t first = collwise_block_start(size, parts, index);
    return (collwise_part){first, collwise_block_start(size, parts, index + 1) - first};
}

size_t collwise_parts_below(size_t bytes, size_t bound) { return bytes / (bound - 1) + (bytes % (bound - 1) != 0); }

int collwise_rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int collwise_size_of(MPI_Comm comm) {
    int procs;
    MPI_Comm_size(comm, &procs);
    return procs;
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), fanout);
}
