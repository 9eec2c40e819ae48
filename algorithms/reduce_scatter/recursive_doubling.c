/* Groups of 1, 2, 4, ... consecutive ranks join in pairs: partners exchange their groups' partial results of all blocks
 * but those of the sender's group. Where the upper group, cut off at P, is smaller, its partners hand on what they got:
 *     T = log2 P alpha + (log2 P - (P - 1) / P) m (beta + gamma)        if P is a power of two */
#include "internal.h"

/* Ranks `first` to `end` - 1, and where their blocks are, in bytes. */
typedef struct {
    int first, end;
    size_t start_byte, end_byte, all_bytes;
} group;

static group group_from(int first, int ranks, int procs, const size_t *offsets, size_t element_bytes) {
    int end = first + ranks < procs ? first + ranks : procs;
    return (group){.first = first,
                   .end = end,
                   .start_byte = offsets[first] * element_bytes,
                   .end_byte = offsets[end] * element_bytes,
                   .all_bytes = offsets[procs] * element_bytes};
}

static size_t bytes_without(const group *group) { return group->all_bytes - (group->end_byte - group->start_byte); }

static void copy_without(const group *group, char *to, const char *data) {
    collwise_copy(to, data, group->start_byte);
    collwise_copy(to + group->start_byte, data + group->end_byte, group->all_bytes - group->end_byte);
}

/* The first `holders` ranks of a group of `ranks` have something for all: pass it on, down a binomial tree. */
static void hand_on(char *data, size_t bytes, int rank, int ranks, int holders, MPI_Comm comm) {
    for (int distance = ranks / 2; distance > 0; distance /= 2) {
        int place = rank % (2 * distance);
        if (place < distance && place < holders && place + distance >= holders) {
            collwise_send(data, bytes, rank + distance, comm);
        } else if (place >= distance && place >= holders && place - distance < holders) {
            collwise_receive(data, bytes, rank - distance, comm);
        }
    }
}

static void combine_part(const collwise_operation *op, char *received, char *data, size_t bytes, int from_below) {
    if (from_below) {
        collwise_combine(op, received, data, bytes / op->element_bytes);
    } else {
        collwise_combine_left(op, data, received, bytes / op->element_bytes);
    }
}

void collwise_reduce_scatter_recursive_doubling(char *data, const size_t *offsets, char *mine,
                                                const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    char *sent = collwise_scratch(offsets[procs] * op->element_bytes, comm);
    char *received = collwise_scratch(offsets[procs] * op->element_bytes, comm);
    for (int ranks = 1; ranks < procs; ranks *= 2) {
        int partner = rank ^ ranks, first = rank - rank % ranks, other_first = first ^ ranks;
        if (other_first >= procs) {
            continue;
        }
        group own = group_from(first, ranks, procs, offsets, op->element_bytes);
        group other = group_from(other_first, ranks, procs, offsets, op->element_bytes);
        if (partner < procs) {
            copy_without(&own, sent, data);
            collwise_sendrecv(sent, bytes_without(&own), partner, received, bytes_without(&other), partner, comm);
        }
        hand_on(received, bytes_without(&other), rank, ranks, other.end - other.first, comm);
        combine_part(op, received, data, other.start_byte, partner < rank);
        combine_part(op, received + other.start_byte, data + other.end_byte, other.all_bytes - other.end_byte,
                     partner < rank);
    }
    collwise_copy(mine, data + offsets[rank] * op->element_bytes,
                  (offsets[rank + 1] - offsets[rank]) * op->element_bytes);
    collwise_scratch_free(sent);
    collwise_scratch_free(received);
}
