/* A binomial scatter of the message's P blocks, then an allgather by recursive doubling. With P a power of two
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta
 * and else up to ceil(log2 P) rounds more, which hand the last, smaller group's blocks on within its neighbour. */
#include "internal.h"

typedef struct {
    char *data;
    size_t bytes;
    int procs, root, place;
    MPI_Comm comm;
} allgather;

/* Places `first` to `end` - 1, and the part of the message that is their blocks. */
typedef struct {
    int first, end;
    char *data;
    size_t bytes;
} group;

static group group_of(const allgather *all, int first, int width) {
    int end = first + width < all->procs ? first + width : all->procs;
    size_t start = collwise_block_start(all->bytes, all->procs, first);
    return (group){first, end, all->data + start, collwise_block_start(all->bytes, all->procs, end) - start};
}

static int rank_at(const allgather *all, int place) { return (all->root + place) % all->procs; }

static void exchange(const allgather *all, group own, group other, int partner) {
    collwise_sendrecv(own.data, own.bytes, rank_at(all, partner), other.data, other.bytes, rank_at(all, partner),
                      all->comm);
}

/* The left group's first members, as many as the right group has, hold its blocks: their number doubles each round. */
static void spread(const allgather *all, group left, group right) {
    int width = left.end - left.first, index = all->place - left.first;
    for (int holders = right.end - right.first; holders < width; holders *= 2) {
        if (index < holders && index + holders < width) {
            collwise_send(right.data, right.bytes, rank_at(all, all->place + holders), all->comm);
        } else if (holders <= index && index < 2 * holders) {
            collwise_receive(right.data, right.bytes, rank_at(all, all->place - holders), all->comm);
        }
    }
}

/* The groups of `width` places from `first` on and next to it learn each other's blocks. */
static void join(const allgather *all, int first, int width) {
    group left = group_of(all, first, width), right = group_of(all, first + width, width);
    int is_left = all->place < first + width, partner = is_left ? all->place + width : all->place - width;
    if (partner < right.end) {
        exchange(all, is_left ? left : right, is_left ? right : left, partner);
    }
    if (is_left) {
        spread(all, left, right);
    }
}

void collwise_bcast_scatter_allgather(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    allgather all = {data, bytes, tree.procs, root, tree.virtual_rank, comm};
    collwise_scatter_message(data, bytes, root, comm);
    for (int width = 1; width < all.procs; width *= 2) {
        int first = all.place - all.place % (2 * width);
        if (first + width < all.procs) {
            join(&all, first, width);
        }
    }
}
