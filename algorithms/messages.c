/* Point-to-point messages of any size. */
#include "internal.h"

#include <stdlib.h>

static int is_one_piece(size_t bytes) { return bytes <= COLLWISE_PIECE_BYTES; }

/* A message of no bytes is one empty piece: the loops over pieces run once at least. */
static collwise_segment pieces_of(size_t bytes) { return collwise_byte_segments(collwise_whole(bytes), 0); }

void collwise_send(const char *data, size_t bytes, int destination, MPI_Comm comm) {
    if (is_one_piece(bytes)) {
        MPI_Send(data, (int)bytes, MPI_BYTE, destination, COLLWISE_TAG, comm);
        return;
    }
    for (collwise_segment piece = pieces_of(bytes); piece.count > 0; collwise_next_segment(&piece)) {
        collwise_send(data + piece.first, piece.count, destination, comm);
    }
}

void collwise_receive(char *data, size_t bytes, int source, MPI_Comm comm) {
    if (is_one_piece(bytes)) {
        MPI_Recv(data, (int)bytes, MPI_BYTE, source, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
        return;
    }
    for (collwise_segment piece = pieces_of(bytes); piece.count > 0; collwise_next_segment(&piece)) {
        collwise_receive(data + piece.first, piece.count, source, comm);
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

/* All pieces are sent and received without blocking, so that those of one direction never wait for the other's. */
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
    if (!is_one_piece(send_bytes) || !is_one_piece(receive_bytes)) {
        sendrecv_in_pieces(send, send_bytes, destination, receive, receive_bytes, source, comm);
        return;
    }
    MPI_Sendrecv(send, (int)send_bytes, MPI_BYTE, destination, COLLWISE_TAG, receive, (int)receive_bytes, MPI_BYTE,
                 source, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
}

collwise_requests collwise_requests_make(int room, MPI_Comm comm) {
    collwise_requests made;
    int is_long = room > COLLWISE_FEW_REQUESTS;
    made.more = is_long ? collwise_allocate((size_t)room * sizeof *made.more, comm) : NULL;
    made.count = 0;
    made.room = is_long ? room : COLLWISE_FEW_REQUESTS;
    made.comm = comm;
    return made;
}

MPI_Request *collwise_next_request(collwise_requests *requests) {
    if (requests->count == requests->room) {
        int room = 2 * requests->room + 4;
        MPI_Request *longer = collwise_allocate((size_t)room * sizeof *longer, requests->comm);
        for (int i = 0; i < requests->count; i++) {
            longer[i] = collwise_request_list(requests)[i];
        }
        free(requests->more);
        requests->more = longer;
        requests->room = room;
    }
    /* If the call that fills it fails and errors return, a wait for it does nothing. */
    MPI_Request *next = &collwise_request_list(requests)[requests->count++];
    *next = MPI_REQUEST_NULL;
    return next;
}

void collwise_start_send(collwise_requests *requests, const char *data, size_t bytes, int destination) {
    collwise_segment piece = pieces_of(bytes);
    do {
        MPI_Isend(data + piece.first, (int)piece.count, MPI_BYTE, destination, COLLWISE_TAG, requests->comm,
                  collwise_next_request(requests));
        collwise_next_segment(&piece);
    } while (piece.count > 0);
}

void collwise_start_synchronous_send(collwise_requests *requests, const char *data, size_t bytes, int destination) {
    collwise_segment piece = pieces_of(bytes);
    do {
        MPI_Issend(data + piece.first, (int)piece.count, MPI_BYTE, destination, COLLWISE_TAG, requests->comm,
                   collwise_next_request(requests));
        collwise_next_segment(&piece);
    } while (piece.count > 0);
}

void collwise_start_receive(collwise_requests *requests, char *data, size_t bytes, int source) {
    collwise_segment piece = pieces_of(bytes);
    do {
        MPI_Irecv(data + piece.first, (int)piece.count, MPI_BYTE, source, COLLWISE_TAG, requests->comm,
                  collwise_next_request(requests));
        collwise_next_segment(&piece);
    } while (piece.count > 0);
}

void collwise_wait(collwise_requests *requests) {
    MPI_Waitall(requests->count, collwise_request_list(requests), MPI_STATUSES_IGNORE);
    requests->count = 0;
}

void collwise_requests_free(collwise_requests *requests) {
    free(requests->more);
    requests->more = NULL;
}

static void post_next(collwise_incoming *incoming) {
    if (incoming->source >= 0 && incoming->next.count > 0) {
        collwise_start_receive(&incoming->receive, incoming->data + incoming->next.first * incoming->unit_bytes,
                               incoming->next.count * incoming->unit_bytes, incoming->source);
        collwise_next_segment(&incoming->next);
    }
}

collwise_incoming collwise_incoming_make(char *data, size_t unit_bytes, collwise_segment first, int source,
                                         MPI_Comm comm) {
    collwise_incoming incoming = {.data = data,
                                  .unit_bytes = unit_bytes,
                                  .source = source,
                                  .next = first,
                                  .receive = collwise_requests_make(1, comm)};
    if (collwise_posts_ahead()) {
        post_next(&incoming);
    }
    return incoming;
}

void collwise_incoming_wait(collwise_incoming *incoming) {
    int is_posted = collwise_posts_ahead();
    if (!is_posted) {
        post_next(incoming);
    }
    collwise_wait(&incoming->receive);
    if (is_posted) {
        post_next(incoming);
    }
}

void collwise_incoming_free(collwise_incoming *incoming) { collwise_requests_free(&incoming->receive); }
