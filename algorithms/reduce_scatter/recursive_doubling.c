/* Reduce-scatter by recursive doubling. For width = 1, 2, 4, ... below P:
 *
 *     groups of `width` consecutive ranks join in pairs
 *     partners, which have the same place in the two groups, exchange their groups' reductions of all blocks but those
 *     of the sender's group, and combine what they receive with their own
 *     if the upper group is cut off at P: processes of the lower group without a partner get what others received
 *
 *     T = log2 P alpha + (log2 P - (P - 1) / P) m (beta + gamma)        if P is a power of two */
#include "internal.h"

/* Ranks `first` to `end` - 1, and where their blocks are, in bytes. */
typedef struct {
    int first, end;
    size_t start_byte, end_byte, all_bytes;
} group;

static group group_from(int first, int width, int procs, const size_t *offsets, size_t element_bytes) {
    int end = first + width < procs ? first + width : procs;
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

/* Passes on what the first `holders` processes of a group received to all others, down a binomial tree. */
static void pass_on(char *data, size_t bytes, int rank, int width, int holders, MPI_Comm comm) {
    for (int distance = width / 2; distance > 0; distance /= 2) {
        int place = rank % (2 * distance);
        if (place < distance && place < holders && place + distance >= holders) {
            collwise_send(data, bytes, rank + distance, comm);
        } else if (place >= distance && place >= holders && place - distance < holders) {
            collwise_receive(data, bytes, rank - distance, comm);
        }
    }
}

/* `received` has all blocks but those of the group that sent it. */
static void combine_without(const group *sender, char *data, char *received, const collwise_operation *op,
                            int sender_is_lower) {
    size_t after = sender->all_bytes - sender->end_byte;
    collwise_combine_received(op, data, received, sender->start_byte / op->element_bytes, sender_is_lower);
    collwise_combine_received(op, data + sender->end_byte, received + sender->start_byte, after / op->element_bytes,
                              sender_is_lower);
}

void collwise_reduce_scatter_recursive_doubling(char *data, const size_t *offsets, char *mine,
                                                const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    char *sent = collwise_scratch(offsets[procs] * op->element_bytes, comm);
    char *received = collwise_scratch(offsets[procs] * op->element_bytes, comm);
    for (int width = 1; width < procs; width *= 2) {
        int partner = rank ^ width, first = rank - rank % width, other_first = first ^ width;
        if (other_first >= procs) {
            continue;
        }
        group own = group_from(first, width, procs, offsets, op->element_bytes);
        group other = group_from(other_first, width, procs, offsets, op->element_bytes);
        if (partner < procs) {
            copy_without(&own, sent, data);
            collwise_sendrecv(sent, bytes_without(&own), partner, received, bytes_without(&other), partner, comm);
        }
        pass_on(received, bytes_without(&other), rank, width, other.end - other.first, comm);
        combine_without(&other, data, received, op, partner < rank);
    }
    collwise_copy(mine, data + offsets[rank] * op->element_bytes,
                  (offsets[rank + 1] - offsets[rank]) * op->element_bytes);
    collwise_scratch_free(sent);
    collwise_scratch_free(received);
}
