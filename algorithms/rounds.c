/* Operations as schedules of rounds. */
#include "tasks.h"

#include <sched.h>
#include <stdlib.h>

collwise_rounds collwise_rounds_make(MPI_Comm comm) {
    return (collwise_rounds){.requests = collwise_requests_make(4, comm)};
}

void collwise_rounds_free(collwise_rounds *of) {
    free(of->actions);
    collwise_requests_free(&of->requests);
    collwise_scratch_free(of->scratch);
}

void collwise_rounds_clear(collwise_rounds *of) { of->count = of->next = 0; }

char *collwise_rounds_scratch(collwise_rounds *of, size_t bytes) {
    if (of->scratch == NULL || of->scratch_bytes < bytes) {
        collwise_scratch_free(of->scratch);
        of->scratch = collwise_scratch(bytes, of->requests.comm);
        of->scratch_bytes = bytes;
    }
    return of->scratch;
}

/* --- Making an operation ------------------------------------------------------------------------------------------ */

void collwise_add_action(collwise_rounds *to, collwise_action action) {
    if (to->count == to->room) {
        to->room = 2 * to->room + 8;
        collwise_action *longer = collwise_allocate(to->room * sizeof *longer, to->requests.comm);
        for (size_t i = 0; i < to->count; i++) {
            longer[i] = to->actions[i];
        }
        free(to->actions);
        to->actions = longer;
    }
    to->actions[to->count++] = action;
}

void collwise_add_send(collwise_rounds *to, const char *data, size_t bytes, int destination) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_SEND, .peer = destination, .from = data, .size = bytes});
}

void collwise_add_receive(collwise_rounds *to, char *data, size_t bytes, int source) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_RECEIVE, .peer = source, .data = data, .size = bytes});
}

void collwise_add_copy(collwise_rounds *to, char *data, const char *from, size_t bytes) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_COPY, .data = data, .from = from, .size = bytes});
}

void collwise_add_combine(collwise_rounds *to, const collwise_operation *op, char *data, char *received,
                          size_t elements, int sender_is_lower) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_COMBINE,
                                              .peer = sender_is_lower,
                                              .data = data,
                                              .received = received,
                                              .size = elements,
                                              .op = op});
}

void collwise_add_poll(collwise_rounds *to, int (*poll)(void *state), void *state) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_POLL, .poll = poll, .state = state});
}

void collwise_add_round(collwise_rounds *to) {
    collwise_add_action(to, (collwise_action){.kind = COLLWISE_NEXT_ROUND});
}

/* --- Running operations ------------------------------------------------------------------------------------------- */

static void start_action(collwise_rounds *of, const collwise_action *action) {
    switch (action->kind) {
    case COLLWISE_SEND:
        collwise_start_send(&of->requests, action->from, action->size, action->peer);
        break;
    case COLLWISE_RECEIVE:
        collwise_start_receive(&of->requests, action->data, action->size, action->peer);
        break;
    case COLLWISE_COPY:
        collwise_copy(action->data, action->from, action->size);
        break;
    case COLLWISE_COMBINE:
        collwise_combine_received(action->op, action->data, action->received, action->size, action->peer);
        break;
    case COLLWISE_POLL:
        of->poll = action->poll;
        of->state = action->state;
        break;
    case COLLWISE_CALL:
        action->call(&of->requests, action);
        break;
    case COLLWISE_NEXT_ROUND:
        break;
    }
}

static int is_over(const collwise_rounds *of) { return of->open == 0 && of->poll == NULL && of->next == of->count; }

/* Starts rounds until there is something to wait for. */
static void go_on(collwise_rounds *of) {
    while (of->open == 0 && of->poll == NULL && of->next < of->count) {
        of->requests.count = 0;
        const collwise_action *action;
        do {
            action = &of->actions[of->next++];
            start_action(of, action);
        } while (action->kind != COLLWISE_NEXT_ROUND && of->next < of->count);
        of->open = of->requests.count;
    }
}

void collwise_rounds_start(collwise_rounds *of) { go_on(of); }

/* The requests of several operations in one list. */
typedef struct {
    MPI_Request *list;
    int count, room;
    collwise_rounds **operations;
} joined_requests;

static int not_over(collwise_rounds **found, collwise_rounds *const *list, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (!is_over(list[i])) {
            found[left++] = list[i];
        }
    }
    return left;
}

static void join(joined_requests *all, int operations, MPI_Comm comm) {
    int count = 0;
    for (int i = 0; i < operations; i++) {
        count += all->operations[i]->requests.count;
    }
    if (count > all->room) {
        free(all->list);
        all->room = 2 * count;
        all->list = collwise_allocate((size_t)all->room * sizeof *all->list, comm);
    }
    all->count = 0;
    for (int i = 0; i < operations; i++) {
        for (int j = 0; j < all->operations[i]->requests.count; j++) {
            all->list[all->count++] = collwise_request_list(&all->operations[i]->requests)[j];
        }
    }
}

/* A request of the joined list is complete. */
static void take(const joined_requests *all, int index) {
    int i = 0;
    for (; index >= all->operations[i]->requests.count; i++) {
        index -= all->operations[i]->requests.count;
    }
    collwise_rounds *of = all->operations[i];
    collwise_request_list(&of->requests)[index] = MPI_REQUEST_NULL;
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
    int operations = not_over(all->operations, list, count), index = MPI_UNDEFINED, found = 0;
    if (operations == 0) {
        return 0;
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
    return (joined_requests){.operations = collwise_allocate((size_t)count * sizeof(collwise_rounds *), comm)};
}

static void free_joined(joined_requests *all) {
    free(all->list);
    free(all->operations);
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
