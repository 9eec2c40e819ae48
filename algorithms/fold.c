/* The fold to a power of two: of P = 2^steps + extra processes, `extra` pairs act as one process each, which leaves
 * 2^steps active processes. Their new ranks are in the order of the ranks that they act for. */
#include "internal.h"

static int active_of_pair(const collwise_fold *fold, int pair) {
    switch (fold->rule) {
    case COLLWISE_FOLD_INTO_EVEN:
        return fold->root / 2 == pair ? fold->root : 2 * pair;
    case COLLWISE_FOLD_INTO_ODD:
        return 2 * pair + 1;
    case COLLWISE_FOLD_LAST_INTO_FIRST:
        return pair;
    }
    return -1;
}

int collwise_fold_rank(const collwise_fold *fold, int new_rank) {
    if (new_rank < fold->extra) {
        return active_of_pair(fold, new_rank);
    }
    return fold->rule == COLLWISE_FOLD_LAST_INTO_FIRST ? new_rank : new_rank + fold->extra;
}

int collwise_fold_new_rank(const collwise_fold *fold, int rank) {
    if (fold->rule == COLLWISE_FOLD_LAST_INTO_FIRST) {
        return rank < 1 << fold->steps ? rank : rank - (1 << fold->steps);
    }
    return rank < 2 * fold->extra ? rank / 2 : rank - fold->extra;
}

/* The other process of the pair that `rank` is in, or -1. */
static int partner_of(const collwise_fold *fold, int rank) {
    int active = 1 << fold->steps;
    if (fold->rule != COLLWISE_FOLD_LAST_INTO_FIRST) {
        return rank < 2 * fold->extra ? rank ^ 1 : -1;
    }
    if (rank >= active) {
        return rank - active;
    }
    return rank < fold->extra ? rank + active : -1;
}

collwise_fold collwise_fold_of(collwise_fold_rule rule, int root, MPI_Comm comm) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm), steps = collwise_log2(procs);
    collwise_fold fold = {
        .rule = rule, .root = root, .rank = rank, .steps = steps, .extra = procs - (1 << steps), .comm = comm};
    int new_rank = collwise_fold_new_rank(&fold, rank);
    fold.new_rank = collwise_fold_rank(&fold, new_rank) == rank ? new_rank : -1;
    fold.partner = partner_of(&fold, rank);
    return fold;
}

void collwise_fold_send_back(char *data, size_t bytes, const collwise_fold *fold) {
    if (fold->new_rank < 0) {
        collwise_receive(data, bytes, fold->partner, fold->comm);
    } else if (fold->partner >= 0) {
        collwise_send(data, bytes, fold->partner, fold->comm);
    }
}
