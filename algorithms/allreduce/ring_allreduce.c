/* Allreduce around a ring, segmented or not. The elements are P blocks of equal size:
 *
 *     for each segment of a block:                    reduce-scatter, one segment of every block at a time
 *         for step = 0 to P - 2: send the segment of block rank - step to the next process,
 *                                receive that of block rank - step - 1 from the previous one and combine it
 *     for step = 0 to P - 2:                          allgather, whole blocks
 *         send block rank - step + 1 to the next process, receive block rank - step from the previous one */
#include "internal.h"

typedef struct {
    int procs, rank;
    size_t elements;
    MPI_Comm comm;
} ring;

/* The block of that index mod P, which may be negative. */
static collwise_part block_of(const ring *ring, int index) {
    return collwise_equal_part(ring->elements, ring->procs, (index + ring->procs) % ring->procs);
}

/* The segment of a block that is where `segment` is in the longest block. */
static collwise_part segment_in(collwise_part block, const collwise_segment *segment) {
    size_t start = collwise_min(segment->first, block.count);
    return (collwise_part){block.first + start, collwise_min(segment->count, block.count - start)};
}

static void pass_on(const ring *ring, const char *send, size_t send_bytes, char *receive, size_t receive_bytes) {
    collwise_sendrecv(send, send_bytes, (ring->rank + 1) % ring->procs, receive, receive_bytes,
                      (ring->rank + ring->procs - 1) % ring->procs, ring->comm);
}

static void reduce_scatter_segment(const ring *ring, char *data, const collwise_segment *segment, char *received,
                                   const collwise_operation *op) {
    size_t unit = op->element_bytes;
    for (int step = 0; step < ring->procs - 1; step++) {
        collwise_part sent = segment_in(block_of(ring, ring->rank - step), segment);
        collwise_part own = segment_in(block_of(ring, ring->rank - step - 1), segment);
        pass_on(ring, data + sent.first * unit, sent.count * unit, received, own.count * unit);
        collwise_combine(op, received, data + own.first * unit, own.count);
    }
}

static void allgather_blocks(const ring *ring, char *data, size_t element_bytes) {
    for (int step = 0; step < ring->procs - 1; step++) {
        collwise_part sent = block_of(ring, ring->rank - step + 1);
        collwise_part received = block_of(ring, ring->rank - step);
        pass_on(ring, data + sent.first * element_bytes, sent.count * element_bytes,
                data + received.first * element_bytes, received.count * element_bytes);
    }
}

void collwise_ring_allreduce(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             MPI_Comm comm) {
    ring ring = {.procs = collwise_size_of(comm), .rank = collwise_rank_in(comm), .elements = elements, .comm = comm};
    collwise_part longest = block_of(&ring, 0);
    collwise_segment segment = collwise_element_segments(longest, op, segment_bytes);
    char *received = collwise_scratch(segment.count * op->element_bytes, comm);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        reduce_scatter_segment(&ring, data, &segment, received, op);
    }
    collwise_scratch_free(received);
    allgather_blocks(&ring, data, op->element_bytes);
}
