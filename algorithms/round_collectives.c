/* Collectives as rounds of sends, receives and local reductions. */
#include "tasks.h"

#include <stdlib.h>

/* --- Down and up trees -------------------------------------------------------------------------------------------- */

/* The children in the order of sends: those with the deepest subtrees first. */
static int receiver(const collwise_tree *tree, int index) {
    int deepest_last = tree->topology == COLLWISE_IN_ORDER_BINOMIAL;
    return collwise_tree_child(tree, deepest_last ? tree->child_count - 1 - index : index);
}

void collwise_add_bcast(collwise_rounds *to, const collwise_tree *tree, char *data, collwise_segment first) {
    int is_root = tree->parent < 0;
    collwise_segment in = first, out = first;
    for (size_t round = is_root ? 1 : 0; out.count > 0; round++) {
        if (!is_root && in.count > 0) {
            collwise_add_receive(to, data + in.first, in.count, tree->parent);
        }
        collwise_next_segment(&in);
        if (round > 0) {
            for (int child = 0; child < tree->child_count; child++) {
                collwise_add_send(to, data + out.first, out.count, receiver(tree, child));
            }
            collwise_next_segment(&out);
        }
        collwise_add_round(to);
    }
}

static void add_receives(collwise_rounds *to, const collwise_tree *tree, char *buffers, size_t room,
                         collwise_segment segment, size_t unit) {
    for (int child = 0; segment.count > 0 && child < tree->child_count; child++) {
        collwise_add_receive(to, buffers + (size_t)child * room, segment.count * unit,
                             collwise_tree_source(tree, child));
    }
}

void collwise_add_reduce(collwise_rounds *to, const collwise_tree *tree, char *sum, collwise_segment first,
                         const collwise_operation *op) {
    size_t unit = op->element_bytes, room = first.count * unit, row = (size_t)tree->child_count * room;
    int rank = collwise_rank_in(to->requests.comm);
    char *buffers = row == 0 ? NULL : collwise_rounds_scratch(to, 2 * row);
    collwise_segment in = first, out = first;
    if (row > 0) {
        add_receives(to, tree, buffers, room, in, unit);
        collwise_add_round(to);
    }
    for (size_t i = 0; out.count > 0; i++, collwise_next_segment(&out)) {
        collwise_next_segment(&in);
        if (row > 0) {
            add_receives(to, tree, buffers + (i + 1) % 2 * row, room, in, unit);
        }
        for (int child = 0; child < tree->child_count; child++) {
            collwise_add_combine(to, op, sum + out.first * unit, buffers + i % 2 * row + (size_t)child * room,
                                 out.count, collwise_tree_source(tree, child) < rank);
        }
        if (tree->parent >= 0) {
            collwise_add_send(to, sum + out.first * unit, out.count * unit, tree->parent);
        }
        collwise_add_round(to);
    }
}

/* --- Allreduces --------------------------------------------------------------------------------------------------- */

void collwise_add_doubling_allreduce(collwise_rounds *to, char *data, size_t elements, const collwise_operation *op) {
    size_t bytes = elements * op->element_bytes;
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_INTO_EVEN, 0, to->requests.comm);
    char *received = collwise_rounds_scratch(to, bytes);
    if (fold.new_rank < 0) {
        collwise_add_send(to, data, bytes, fold.partner);
        collwise_add_round(to);
        collwise_add_receive(to, data, bytes, fold.partner);
        return;
    }
    if (fold.partner >= 0) {
        collwise_add_receive(to, received, bytes, fold.partner);
        collwise_add_round(to);
        collwise_add_combine(to, op, data, received, elements, fold.partner < fold.rank);
    }
    for (int step = 0; step < fold.steps; step++) {
        int partner = collwise_fold_rank(&fold, fold.new_rank ^ 1 << step);
        collwise_add_receive(to, received, bytes, partner);
        collwise_add_send(to, data, bytes, partner);
        collwise_add_round(to);
        collwise_add_combine(to, op, data, received, elements, partner < fold.rank);
    }
    if (fold.partner >= 0) {
        collwise_add_send(to, data, bytes, fold.partner);
    }
}

void collwise_add_ring_allreduce(collwise_rounds *to, char *data, size_t elements, const collwise_operation *op) {
    int procs = collwise_size_of(to->requests.comm), rank = collwise_rank_in(to->requests.comm);
    int next = (rank + 1) % procs, previous = (rank + procs - 1) % procs;
    size_t unit = op->element_bytes;
    char *received = collwise_rounds_scratch(to, collwise_equal_part(elements, (size_t)procs, 0).count * unit);
    for (int step = 0; step < 2 * (procs - 1); step++) {
        int is_sum = step >= procs - 1; /* of a block: that of all processes */
        collwise_part sent = collwise_equal_part(elements, (size_t)procs, (size_t)((rank - step + 2 * procs) % procs));
        collwise_part own =
            collwise_equal_part(elements, (size_t)procs, (size_t)((rank - step - 1 + 2 * procs) % procs));
        char *place = data + own.first * unit;
        collwise_add_receive(to, is_sum ? place : received, own.count * unit, previous);
        collwise_add_send(to, data + sent.first * unit, sent.count * unit, next);
        collwise_add_round(to);
        if (!is_sum) {
            collwise_add_combine(to, op, place, received, own.count, 1);
        }
    }
}

/* --- Barriers ----------------------------------------------------------------------------------------------------- */

/* Two bytes, of which nobody looks at the values: to be sent, and to be received. */
static char *tokens(collwise_rounds *to) { return collwise_rounds_scratch(to, 2); }

void collwise_add_signals_up(collwise_rounds *to, const collwise_tree *tree) {
    for (int child = 0; child < tree->child_count; child++) {
        collwise_add_receive(to, tokens(to) + 1, COLLWISE_TOKEN_BYTES, collwise_tree_source(tree, child));
    }
    collwise_add_round(to);
    if (tree->parent >= 0) {
        collwise_add_send(to, tokens(to), COLLWISE_TOKEN_BYTES, tree->parent);
    }
}

void collwise_add_signals_down(collwise_rounds *to, const collwise_tree *tree) {
    if (tree->parent >= 0) {
        collwise_add_receive(to, tokens(to) + 1, COLLWISE_TOKEN_BYTES, tree->parent);
        collwise_add_round(to);
    }
    for (int child = 0; child < tree->child_count; child++) {
        collwise_add_send(to, tokens(to), COLLWISE_TOKEN_BYTES, receiver(tree, child));
    }
}

void collwise_add_dissemination(collwise_rounds *to) {
    int procs = collwise_size_of(to->requests.comm), rank = collwise_rank_in(to->requests.comm);
    for (int distance = 1; distance < procs; distance *= 2) {
        collwise_add_receive(to, tokens(to) + 1, COLLWISE_TOKEN_BYTES, (rank + procs - distance) % procs);
        collwise_add_send(to, tokens(to), COLLWISE_TOKEN_BYTES, (rank + distance) % procs);
        collwise_add_round(to);
    }
}

/* --- Blocks along trees ------------------------------------------------------------------------------------------- */

int collwise_block_order(const collwise_tree *tree, int *ranks, MPI_Comm comm) {
    int *waiting = collwise_allocate((size_t)tree->procs * sizeof *waiting, comm), open = 0, found = 0;
    waiting[open++] = tree->parent < 0 ? tree->root : collwise_rank_in(comm);
    while (open > 0) {
        int rank = waiting[--open];
        collwise_tree at = collwise_tree_at(tree->topology, tree->procs, tree->root, rank, tree->degree);
        ranks[found++] = rank;
        for (int child = at.child_count - 1; child >= 0; child--) {
            waiting[open++] = collwise_tree_source(&at, child);
        }
    }
    free(waiting);
    return found;
}

collwise_block_tree collwise_block_tree_make(const collwise_tree *tree, const size_t *blocks_of, MPI_Comm comm) {
    int *ranks = collwise_allocate((size_t)tree->procs * sizeof *ranks, comm);
    int count = collwise_block_order(tree, ranks, comm), next = 1;
    collwise_block_tree made = {.tree = *tree, .own = blocks_of[ranks[0]], .total = blocks_of[ranks[0]]};
    made.below = collwise_allocate((size_t)tree->child_count * sizeof *made.below, comm);
    for (int child = 0; child < tree->child_count; child++) {
        int end_rank = child + 1 < tree->child_count ? collwise_tree_source(tree, child + 1) : -1;
        made.below[child] = 0;
        for (; next < count && ranks[next] != end_rank; next++) {
            made.below[child] += blocks_of[ranks[next]];
        }
        made.total += made.below[child];
    }
    free(ranks);
    return made;
}

void collwise_block_tree_free(collwise_block_tree *tree) { free(tree->below); }

void collwise_add_gather(collwise_rounds *to, const collwise_block_tree *tree, char *blocks, size_t block_bytes) {
    size_t place = tree->own;
    for (int child = 0; child < tree->tree.child_count; child++) {
        collwise_add_receive(to, blocks + place * block_bytes, tree->below[child] * block_bytes,
                             collwise_tree_source(&tree->tree, child));
        place += tree->below[child];
    }
    collwise_add_round(to);
    if (tree->tree.parent >= 0) {
        collwise_add_send(to, blocks, tree->total * block_bytes, tree->tree.parent);
        collwise_add_round(to);
    }
}

/* The child whose blocks are last, in binomial trees the one with most of them, is sent to first. */
void collwise_add_scatter(collwise_rounds *to, const collwise_block_tree *tree, char *blocks, size_t block_bytes) {
    if (tree->tree.parent >= 0) {
        collwise_add_receive(to, blocks, tree->total * block_bytes, tree->tree.parent);
        collwise_add_round(to);
    }
    size_t place = tree->total;
    for (int child = tree->tree.child_count - 1; child >= 0; child--) {
        place -= tree->below[child];
        collwise_add_send(to, blocks + place * block_bytes, tree->below[child] * block_bytes,
                          collwise_tree_source(&tree->tree, child));
    }
    collwise_add_round(to);
}

/* --- Blocks between all ------------------------------------------------------------------------------------------- */

static size_t size_of(const size_t *offsets, int index) { return offsets[index + 1] - offsets[index]; }

void collwise_add_ring_allgather(collwise_rounds *to, char *all, const size_t *offsets) {
    int procs = collwise_size_of(to->requests.comm), rank = collwise_rank_in(to->requests.comm);
    for (int step = 0; step < procs - 1; step++) {
        int sent = (rank - step + procs) % procs, received = (rank - step - 1 + procs) % procs;
        collwise_add_receive(to, all + offsets[received], size_of(offsets, received), (rank + procs - 1) % procs);
        collwise_add_send(to, all + offsets[sent], size_of(offsets, sent), (rank + 1) % procs);
        collwise_add_round(to);
    }
}

/* The bytes of `count` blocks from that of `first` on, in the order first, first + 1, ... */
static size_t size_from(const size_t *offsets, int first, int count, int procs) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += size_of(offsets, (first + i) % procs);
    }
    return bytes;
}

void collwise_add_bruck_allgather(collwise_rounds *to, char *all, const size_t *offsets) {
    int procs = collwise_size_of(to->requests.comm), rank = collwise_rank_in(to->requests.comm);
    for (int known = 1; known < procs; known *= 2) {
        int count = 2 * known < procs ? known : procs - known;
        collwise_add_receive(to, all + size_from(offsets, rank, known, procs),
                             size_from(offsets, rank + known, count, procs), (rank + known) % procs);
        collwise_add_send(to, all, size_from(offsets, rank, count, procs), (rank + procs - known) % procs);
        collwise_add_round(to);
    }
}

void collwise_add_pairwise(collwise_rounds *to, const char *send, char *receive, const size_t *offsets) {
    int procs = collwise_size_of(to->requests.comm), rank = collwise_rank_in(to->requests.comm);
    collwise_add_copy(to, receive + offsets[rank], send + offsets[rank], size_of(offsets, rank));
    for (int step = 1; step < procs; step++) {
        int destination = (rank + step) % procs, source = (rank + procs - step) % procs;
        collwise_add_receive(to, receive + offsets[source], size_of(offsets, source), source);
        collwise_add_send(to, send + offsets[destination], size_of(offsets, destination), destination);
        collwise_add_round(to);
    }
}
