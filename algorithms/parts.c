/* Parts of a message: segments, parts of equal size, and one block a process. */
#include "internal.h"

collwise_segment collwise_segments_of(collwise_part message, size_t size) {
    return (collwise_segment){.first = message.first,
                              .count = collwise_min(size, message.count),
                              .size = size,
                              .end = message.first + message.count};
}

collwise_segment collwise_byte_segments(collwise_part message, size_t segment_bytes) {
    size_t size = segment_bytes == 0 ? COLLWISE_PIECE_BYTES : collwise_min(segment_bytes, COLLWISE_PIECE_BYTES);
    return collwise_segments_of(message, size);
}

collwise_segment collwise_element_segments(collwise_part message, const collwise_operation *op, size_t segment_bytes) {
    if (segment_bytes == 0 || op->element_bytes == 0) {
        return collwise_segments_of(message, message.count);
    }
    size_t elements = segment_bytes / op->element_bytes;
    return collwise_segments_of(message, elements > 0 ? elements : 1);
}

void collwise_next_segment(collwise_segment *segment) {
    segment->first += segment->count;
    segment->count = collwise_min(segment->size, segment->end - segment->first);
}

size_t collwise_segments_left(const collwise_segment *segment) {
    size_t left = segment->end - segment->first;
    return left == 0 ? 0 : (left - 1) / segment->size + 1;
}

collwise_part collwise_equal_parts(size_t size, size_t parts, size_t first, size_t end) {
    size_t each = size / parts, longer = size % parts; /* the first ones are one longer */
    size_t start = first * each + collwise_min(first, longer);
    return (collwise_part){.first = start, .count = end * each + collwise_min(end, longer) - start};
}

collwise_part collwise_equal_part(size_t size, size_t parts, size_t index) {
    return collwise_equal_parts(size, parts, index, index + 1);
}

size_t collwise_parts_below(size_t bytes, size_t bound) { return bytes / (bound - 1) + (bytes % (bound - 1) != 0); }

size_t *collwise_equal_offsets(size_t block_bytes, MPI_Comm comm) {
    int procs = collwise_size_of(comm);
    size_t *offsets = collwise_sizes((size_t)procs + 1, comm);
    for (int rank = 0; rank <= procs; rank++) {
        offsets[rank] = (size_t)rank * block_bytes;
    }
    return offsets;
}

size_t collwise_largest(const size_t *sizes, int count) {
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        most = sizes[i] > most ? sizes[i] : most;
    }
    return most;
}
