/* What the two rings share. Blocks travel around, one a process at any time, and each process adds its part to the
 * block that passes; P - 1 steps later every process has one block's sum, and the sums go around once more. In phases,
 * the first round is made with one segment of every block, then with the next ones. */
#include "internal.h"

typedef struct {
    int procs, rank;
    size_t elements;
    MPI_Comm comm;
} ring;

/* `count` elements of a block from its element `first` on, or what there is of them. Blocks count on beyond P - 1. */
static collwise_part part_of(const ring *in, int block, size_t first, size_t count) {
    block %= in->procs;
    size_t start = collwise_block_start(in->elements, in->procs, block);
    size_t end = collwise_block_start(in->elements, in->procs, block + 1);
    size_t from = collwise_least(start + first, end);
    return (collwise_part){.first = from, .count = collwise_least(count, end - from)};
}

static void pass(const ring *in, const char *send, size_t send_bytes, char *receive, size_t receive_bytes) {
    collwise_sendrecv(send, send_bytes, (in->rank + 1) % in->procs, receive, receive_bytes,
                      (in->rank + in->procs - 1) % in->procs, in->comm);
}

/* Ends with the sum of block rank + 1's segment. */
static void reduce_segments(const ring *in, char *data, size_t first, size_t segment, char *arrived,
                            const collwise_operation *op) {
    size_t unit = op->element_bytes;
    for (int step = 0; step < in->procs - 1; step++) {
        collwise_part leaves = part_of(in, in->rank + in->procs - step, first, segment);
        collwise_part comes = part_of(in, in->rank + in->procs - step - 1, first, segment);
        pass(in, data + leaves.first * unit, leaves.count * unit, arrived, comes.count * unit);
        collwise_combine(op, arrived, data + comes.first * unit, comes.count);
    }
}

static void hand_around(const ring *in, char *data, size_t element_bytes) {
    for (int step = 0; step < in->procs - 1; step++) {
        collwise_part leaves = part_of(in, in->rank + in->procs - step + 1, 0, in->elements);
        collwise_part comes = part_of(in, in->rank + in->procs - step, 0, in->elements);
        pass(in, data + leaves.first * element_bytes, leaves.count * element_bytes, data + comes.first * element_bytes,
             comes.count * element_bytes);
    }
}

void collwise_ring_allreduce(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             MPI_Comm comm) {
    ring in = {.elements = elements, .comm = comm};
    MPI_Comm_size(comm, &in.procs);
    MPI_Comm_rank(comm, &in.rank);
    size_t longest = collwise_block_start(elements, in.procs, 1);
    size_t segment = collwise_least(collwise_segment_elements(op, longest, segment_bytes), longest);
    char *arrived = collwise_scratch(segment * op->element_bytes, comm);
    for (size_t first = 0; first < longest; first += segment) {
        reduce_segments(&in, data, first, segment, arrived, op);
    }
    collwise_scratch_free(arrived);
    hand_around(&in, data, op->element_bytes);
}
