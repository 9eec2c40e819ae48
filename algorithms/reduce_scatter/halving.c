/* Reduce-scatter by recursive vector halving, which recursive halving and the butterfly share:
 *
 *     fold the processes into 2^k active ones, of which each acts for itself, or for its pair (fold.c)
 *     held = the shares of all active processes; a share is the blocks of the processes that one acts for
 *     for each of k rounds:
 *         partner = the furthest process with which no exchange was made (recursive halving),
 *                   or the nearest (butterfly)
 *         the one of lower rank takes the lower half of `held`, the other one the upper half
 *         exchange contributions with the partner, and combine those to the half taken, which is now `held`
 *     send the blocks of the share that is left to the processes that they belong to
 *
 * Between the furthest first, the share that is left is the process's own. Between the nearest first, where rank order
 * is kept, it is that of the process whose new rank has the same bits in reverse order. */
#include "internal.h"

/* The ranks that an active process acts for are from here to below that of the next new rank. */
static int first_rank(const collwise_fold *fold, int new_rank) {
    return collwise_fold_rank(fold, new_rank) - (new_rank < fold->extra);
}

/* The elements in the shares of the new ranks `first` to `end` - 1. */
static collwise_part shares(const collwise_fold *fold, const size_t *offsets, int first, int end) {
    size_t start = offsets[first_rank(fold, first)];
    return (collwise_part){.first = start, .count = offsets[first_rank(fold, end)] - start};
}

static collwise_part block_of(const size_t *offsets, int rank) {
    return (collwise_part){.first = offsets[rank], .count = offsets[rank + 1] - offsets[rank]};
}

static int bits_reversed(int value, int bits) {
    int reversed = 0;
    for (int bit = 0; bit < bits; bit++) {
        reversed = 2 * reversed + (value >> bit & 1);
    }
    return reversed;
}

static void halve(char *data, const size_t *offsets, char *received, const collwise_operation *op,
                  const collwise_fold *fold, int nearest_first) {
    int active = 1 << fold->steps, first = 0; /* of the new ranks whose shares are held */
    for (int half = active / 2; half > 0; half /= 2) {
        int partner = fold->new_rank ^ (nearest_first ? active / (2 * half) : half);
        collwise_part lower = shares(fold, offsets, first, first + half);
        collwise_part upper = shares(fold, offsets, first + half, first + 2 * half);
        int takes_lower = fold->new_rank < partner;
        collwise_exchange_and_combine(data, takes_lower ? upper : lower, takes_lower ? lower : upper, received, op,
                                      collwise_fold_rank(fold, partner), fold->comm);
        first += takes_lower ? 0 : half;
    }
}

/* Sends the blocks of `share` to the processes that they belong to, and receives the own block from `source`. */
static void exchange_blocks(const char *data, const size_t *offsets, char *mine, size_t element_bytes,
                            const collwise_fold *fold, int share, int source) {
    collwise_requests requests = collwise_requests_make(3, fold->comm);
    if (source != fold->rank) {
        collwise_start_receive(&requests, mine, block_of(offsets, fold->rank).count * element_bytes, source);
    }
    for (int rank = first_rank(fold, share); rank < first_rank(fold, share + 1); rank++) {
        collwise_part block = block_of(offsets, rank);
        if (rank == fold->rank) {
            collwise_copy(mine, data + block.first * element_bytes, block.count * element_bytes);
        } else {
            collwise_start_send(&requests, data + block.first * element_bytes, block.count * element_bytes, rank);
        }
    }
    collwise_wait(&requests);
    collwise_requests_free(&requests);
}

void collwise_reduce_scatter_by_halving(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                        int nearest_first, MPI_Comm comm) {
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_INTO_ODD, 0, comm);
    int new_rank = collwise_fold_new_rank(&fold, fold.rank); /* of the process that acts for this one */
    int share = nearest_first ? bits_reversed(new_rank, fold.steps) : new_rank;
    int source = collwise_fold_rank(&fold, share); /* reversing bits twice changes nothing */
    size_t elements = offsets[collwise_size_of(comm)], bytes = elements * op->element_bytes;
    if (fold.new_rank < 0) {
        collwise_send(data, bytes, fold.partner, comm);
        collwise_receive(mine, block_of(offsets, fold.rank).count * op->element_bytes, source, comm);
        return;
    }
    char *received = collwise_scratch(bytes, comm);
    if (fold.partner >= 0) {
        collwise_receive(received, bytes, fold.partner, comm);
        collwise_combine(op, received, data, elements);
    }
    halve(data, offsets, received, op, &fold, nearest_first);
    exchange_blocks(data, offsets, mine, op->element_bytes, &fold, share, source);
    collwise_scratch_free(received);
}
