#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

void collwise_send(const char *data, size_t bytes, int destination, MPI_Comm comm) {
    do {
        size_t piece = least(bytes, COLLWISE_PIECE_BYTES);
        MPI_Send(data, (int)piece, MPI_BYTE, destination, COLLWISE_TAG, comm);
        data += piece;
        bytes -= piece;
    } while (bytes > 0);
}

void collwise_receive(char *data, size_t bytes, int source, MPI_Comm comm) {
    do {
        size_t piece = least(bytes, COLLWISE_PIECE_BYTES);
        MPI_Recv(data, (int)piece, MPI_BYTE, source, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
        data += piece;
        bytes -= piece;
    } while (bytes > 0);
}

void collwise_exchange(const char *send, size_t send_bytes, char *receive, size_t receive_bytes, int partner,
                       MPI_Comm comm) {
    do {
        size_t out = least(send_bytes, COLLWISE_PIECE_BYTES);
        size_t in = least(receive_bytes, COLLWISE_PIECE_BYTES);
        MPI_Sendrecv(send, (int)out, MPI_BYTE, partner, COLLWISE_TAG, receive, (int)in, MPI_BYTE, partner, COLLWISE_TAG,
                     comm, MPI_STATUS_IGNORE);
        send += out;
        send_bytes -= out;
        receive += in;
        receive_bytes -= in;
    } while (send_bytes > 0 || receive_bytes > 0);
}

size_t collwise_segment_bytes(size_t segment_bytes) {
    return segment_bytes == 0 ? COLLWISE_PIECE_BYTES : least(segment_bytes, COLLWISE_PIECE_BYTES);
}

size_t collwise_segment_count(size_t bytes, size_t segment_bytes) {
    size_t segment = collwise_segment_bytes(segment_bytes);
    return bytes / segment + (bytes % segment != 0);
}

size_t collwise_segment_length(size_t bytes, size_t segment_bytes, size_t index) {
    size_t segment = collwise_segment_bytes(segment_bytes);
    return least(segment, bytes - index * segment);
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    return collwise_tree_at(topology, procs, root, rank, fanout);
}

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for %zu bytes\n", bytes);
        MPI_Abort(comm, 1);
    }
    return memory;
}
