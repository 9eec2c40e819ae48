/* Operations as schedules of rounds. */
#include "tasks.h"

#include <sched.h>
#include <stdlib.h>

typedef enum { SEND, RECEIVE, COPY, COMBINE, LIBRARY_BCAST, LIBRARY_REDUCE, NEXT_ROUND } action_kind;

struct collwise_action {
    action_kind kind;
    int peer; /* or the root; of COMBINE: whether the sender has the lower rank */
    char *data;
    const char *from;
    char *received;
    size_t size; /* in elements where there is an operation, else in bytes */
    const collwise_operation *op;
};

collwise_rounds collwise_rounds_make(int hops, MPI_Comm comm) {
    return (collwise_rounds){.hops = hops, .requests = collwise_requests_make(4, comm)};
}

void collwise_rounds_free(collwise_rounds *of) {
    free(of->actions);
    collwise_requests_free(&of->requests);
    collwise_scratch_free(of->scratch);
}

void collwise_rounds_clear(collwise_rounds *of) {
    of->count = of->next = 0;
    of->round = 0;
}

char *collwise_rounds_scratch(collwise_rounds *of, size_t bytes) {
    if (of->scratch == NULL || of->scratch_bytes < bytes) {
        collwise_scratch_free(of->scratch);
        of->scratch = collwise_scratch(bytes, of->requests.comm);
        of->scratch_bytes = bytes;
    }
    return of->scratch;
}

/* --- Making an operation ------------------------------------------------------------------------------------------ */

static void add(collwise_rounds *to, struct collwise_action action) {
    if (to->count == to->room) {
        to->room = 2 * to->room + 8;
        struct collwise_action *longer = collwise_allocate(to->room * sizeof *longer, to->requests.comm);
        for (size_t i = 0; i < to->count; i++) {
            longer[i] = to->actions[i];
        }
        free(to->actions);
        to->actions = longer;
    }
    to->actions[to->count++] = action;
}

void collwise_add_send(collwise_rounds *to, const char *data, size_t bytes, int destination) {
    add(to, (struct collwise_action){.kind = SEND, .peer = destination, .from = data, .size = bytes});
}

void collwise_add_receive(collwise_rounds *to, char *data, size_t bytes, int source) {
    add(to, (struct collwise_action){.kind = RECEIVE, .peer = source, .data = data, .size = bytes});
}

void collwise_add_copy(collwise_rounds *to, char *data, const char *from, size_t bytes) {
    add(to, (struct collwise_action){.kind = COPY, .data = data, .from = from, .size = bytes});
}

void collwise_add_combine(collwise_rounds *to, const collwise_operation *op, char *data, char *received,
                          size_t elements, int sender_is_lower) {
    add(to,
        (struct collwise_action){
            .kind = COMBINE, .peer = sender_is_lower, .data = data, .received = received, .size = elements, .op = op});
}

void collwise_add_round(collwise_rounds *to) { add(to, (struct collwise_action){.kind = NEXT_ROUND}); }

void collwise_add_bcast(collwise_rounds *to, const collwise_tree *tree, char *data, collwise_segment first) {
    int is_root = tree->parent < 0;
    collwise_segment in = first, out = first;
    for (size_t round = is_root ? 1 : 0; in.count > 0 || out.count > 0; round++) {
        if (!is_root && in.count > 0) {
            collwise_add_receive(to, data + in.first, in.count, tree->parent);
        }
        if (round > 0) {
            for (int child = 0; child < tree->child_count; child++) {
                collwise_add_send(to, data + out.first, out.count, collwise_tree_child(tree, child));
            }
            collwise_next_segment(&out);
        }
        collwise_next_segment(&in);
        collwise_add_round(to);
    }
}

void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root) {
    add(to, (struct collwise_action){.kind = LIBRARY_BCAST, .peer = root, .data = data, .size = bytes});
    collwise_add_round(to);
}

void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root) {
    add(to, (struct collwise_action){.kind = LIBRARY_REDUCE, .peer = root, .data = sum, .size = elements, .op = op});
    collwise_add_round(to);
}

static void add_receives(collwise_rounds *to, const collwise_tree *tree, char *buffers, collwise_segment segment,
                         size_t unit) {
    for (int child = 0; segment.count > 0 && child < tree->child_count; child++) {
        collwise_add_receive(to, buffers + (size_t)child * segment.size * unit, segment.count * unit,
                             collwise_tree_source(tree, child));
    }
}

void collwise_add_reduce(collwise_rounds *to, const collwise_tree *tree, char *sum, collwise_segment first,
                         const collwise_operation *op) {
    size_t unit = op->element_bytes, row = (size_t)tree->child_count * first.size * unit;
    int rank = collwise_rank_in(to->requests.comm);
    char *buffers = row == 0 ? NULL : collwise_rounds_scratch(to, 2 * row);
    collwise_segment in = first, out = first;
    if (row > 0) {
        add_receives(to, tree, buffers, in, unit);
        collwise_add_round(to);
    }
    for (size_t i = 0; out.count > 0; i++, collwise_next_segment(&out)) {
        collwise_next_segment(&in);
        if (row > 0) {
            add_receives(to, tree, buffers + (i + 1) % 2 * row, in, unit);
        }
        for (int child = 0; child < tree->child_count; child++) {
            collwise_add_combine(to, op, sum + out.first * unit,
                                 buffers + i % 2 * row + (size_t)child * first.size * unit, out.count,
                                 collwise_tree_source(tree, child) < rank);
        }
        if (tree->parent >= 0) {
            collwise_add_send(to, sum + out.first * unit, out.count * unit, tree->parent);
        }
        collwise_add_round(to);
    }
}

/* --- Running operations ------------------------------------------------------------------------------------------- */

static void start_action(collwise_rounds *of, const struct collwise_action *action) {
    switch (action->kind) {
    case SEND:
        collwise_start_send(&of->requests, action->from, action->size, action->peer);
        break;
    case RECEIVE:
        collwise_start_receive(&of->requests, action->data, action->size, action->peer);
        break;
    case COPY:
        collwise_copy(action->data, action->from, action->size);
        break;
    case COMBINE:
        collwise_combine_received(action->op, action->data, action->received, action->size, action->peer);
        break;
    case LIBRARY_BCAST:
        collwise_start_library_bcast(&of->requests, action->data, action->size, action->peer);
        break;
    case LIBRARY_REDUCE:
        collwise_start_library_reduce(&of->requests, action->data, action->size, action->op, action->peer);
        break;
    case NEXT_ROUND:
        break;
    }
}

static int is_over(const collwise_rounds *of) { return of->open == 0 && of->poll == NULL && of->next == of->count; }

/* Starts rounds until there is something to wait for. */
static void go_on(collwise_rounds *of) {
    while (of->open == 0 && of->poll == NULL && of->next < of->count) {
        of->requests.count = 0;
        action_kind kind;
        do {
            const struct collwise_action *action = &of->actions[of->next++];
            start_action(of, action);
            kind = action->kind;
        } while (kind != NEXT_ROUND && of->next < of->count);
        of->open = of->requests.count;
        of->round++;
    }
}

void collwise_rounds_start(collwise_rounds *of) { go_on(of); }

/* The requests of several operations in one list. */
typedef struct {
    MPI_Request *list;
    int count, room;
    collwise_rounds **order;
} joined_requests;

/* The operations that are not over, those first whose messages are expected first. A recorded process, for which no
 * time passes, takes them in this order. */
static int put_in_order(collwise_rounds **order, collwise_rounds *const *list, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (is_over(list[i])) {
            continue;
        }
        int at = found++;
        for (; at > 0 && order[at - 1]->hops + order[at - 1]->round > list[i]->hops + list[i]->round; at--) {
            order[at] = order[at - 1];
        }
        order[at] = list[i];
    }
    return found;
}

static void join(joined_requests *all, int operations, MPI_Comm comm) {
    int count = 0;
    for (int i = 0; i < operations; i++) {
        count += all->order[i]->requests.count;
    }
    if (count > all->room) {
        free(all->list);
        all->room = 2 * count;
        all->list = collwise_allocate((size_t)all->room * sizeof *all->list, comm);
    }
    all->count = 0;
    for (int i = 0; i < operations; i++) {
        for (int j = 0; j < all->order[i]->requests.count; j++) {
            all->list[all->count++] = all->order[i]->requests.list[j];
        }
    }
}

/* A request of the joined list is complete. */
static void take(const joined_requests *all, int index) {
    int i = 0;
    for (; index >= all->order[i]->requests.count; i++) {
        index -= all->order[i]->requests.count;
    }
    collwise_rounds *of = all->order[i];
    of->requests.list[index] = MPI_REQUEST_NULL;
    of->open--;
    go_on(of);
}

static int polls(collwise_rounds *const *list, int count) {
    int polled = 0;
    for (int i = 0; i < count; i++) {
        if (list[i]->poll != NULL) {
            polled = 1;
            if (list[i]->poll(list[i]->state)) {
                list[i]->poll = NULL;
                go_on(list[i]);
            }
        }
    }
    return polled;
}

/* Completes one request: any that is complete, or, if `waits` is set, the first one to be so. Returns the number of
 * operations that are not over. */
static int complete_one(joined_requests *all, collwise_rounds *const *list, int count, int waits) {
    int operations = put_in_order(all->order, list, count), index = MPI_UNDEFINED, found = 0;
    if (operations == 0) {
        return 0;
    }
    if (operations == 1 && waits) {
        collwise_rounds *last = all->order[0];
        MPI_Waitall(last->requests.count, last->requests.list, MPI_STATUSES_IGNORE);
        last->open = 0;
        go_on(last);
        return !is_over(last);
    }
    join(all, operations, list[0]->requests.comm);
    if (waits) {
        MPI_Waitany(all->count, all->list, &index, MPI_STATUS_IGNORE);
    } else {
        MPI_Testany(all->count, all->list, &index, &found, MPI_STATUS_IGNORE);
    }
    if (index != MPI_UNDEFINED) {
        take(all, index);
    }
    return operations;
}

static joined_requests join_nothing(int count, MPI_Comm comm) {
    return (joined_requests){.order = collwise_allocate((size_t)count * sizeof(collwise_rounds *), comm)};
}

static void free_joined(joined_requests *all) {
    free(all->list);
    free(all->order);
}

int collwise_rounds_test(collwise_rounds *const *list, int count) {
    if (count == 0) {
        return 1;
    }
    joined_requests all = join_nothing(count, list[0]->requests.comm);
    polls(list, count);
    int left = complete_one(&all, list, count, 0);
    free_joined(&all);
    return left == 0;
}

void collwise_rounds_wait(collwise_rounds *const *list, int count) {
    if (count == 0) {
        return;
    }
    joined_requests all = join_nothing(count, list[0]->requests.comm);
    int left = count;
    while (left > 0) {
        int polled = polls(list, count);
        left = complete_one(&all, list, count, !polled);
        if (polled) {
            sched_yield(); /* those polled for may wait for this processor */
        }
    }
    free_joined(&all);
}
