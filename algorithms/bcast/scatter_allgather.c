/* Broadcast by a binomial scatter of the message's P equal parts (scatter_message.c), then an allgather by recursive
 * doubling. With v = (rank - root) mod P, for width = 1, 2, 4, ... below P:
 *
 *     groups of `width` consecutive virtual ranks, which have one another's parts, join in pairs, left and right
 *     v exchanges its group's parts for those of the other group with v + width (left) or v - width (right)
 *     if the right group is cut off at P: the processes of the left group without a partner get its parts from others
 *
 * For P a power of two:
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta
 * Otherwise there are up to ceil(log2 P) rounds more, in which the left group passes on the right group's parts. */
#include "internal.h"

typedef struct {
    char *data;
    size_t bytes;
    int procs, root, virtual_rank;
    MPI_Comm comm;
} allgather;

/* The virtual ranks `first` to `end` - 1, and their parts of the message. */
typedef struct {
    int first, end;
    char *data;
    size_t bytes;
} group;

static group group_of(const allgather *all, int first, int width) {
    int end = first + width < all->procs ? first + width : all->procs;
    collwise_part part = collwise_equal_parts(all->bytes, all->procs, first, end);
    return (group){first, end, all->data + part.first, part.count};
}

static int rank_of(const allgather *all, int virtual_rank) { return (all->root + virtual_rank) % all->procs; }

static void exchange(const allgather *all, group own, group other, int partner) {
    collwise_sendrecv(own.data, own.bytes, rank_of(all, partner), other.data, other.bytes, rank_of(all, partner),
                      all->comm);
}

/* The first processes of the left group, as many as the right group has, have its parts. The number of processes that
 * have them doubles in each round. */
static void pass_on_to_left_group(const allgather *all, group left, group right) {
    int width = left.end - left.first, index = all->virtual_rank - left.first;
    for (int holders = right.end - right.first; holders < width; holders *= 2) {
        if (index < holders && index + holders < width) {
            collwise_send(right.data, right.bytes, rank_of(all, all->virtual_rank + holders), all->comm);
        } else if (holders <= index && index < 2 * holders) {
            collwise_receive(right.data, right.bytes, rank_of(all, all->virtual_rank - holders), all->comm);
        }
    }
}

static void join_groups(const allgather *all, int first, int width) {
    group left = group_of(all, first, width), right = group_of(all, first + width, width);
    int is_left = all->virtual_rank < first + width;
    int partner = is_left ? all->virtual_rank + width : all->virtual_rank - width;
    if (partner < right.end) {
        exchange(all, is_left ? left : right, is_left ? right : left, partner);
    }
    if (is_left) {
        pass_on_to_left_group(all, left, right);
    }
}

void collwise_bcast_scatter_allgather(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    int procs = collwise_size_of(comm), virtual_rank = (collwise_rank_in(comm) - root + procs) % procs;
    allgather all = {data, bytes, procs, root, virtual_rank, comm};
    collwise_scatter_message(data, bytes, root, comm);
    for (int width = 1; width < procs; width *= 2) {
        int first = virtual_rank - virtual_rank % (2 * width);
        if (first + width < procs) {
            join_groups(&all, first, width);
        }
    }
}
