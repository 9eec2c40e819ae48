/* Operations as schedules of rounds. */
#include "tasks.h"

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

/* --- Running it --------------------------------------------------------------------------------------------------- */

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

int collwise_rounds_next(collwise_rounds *of) {
    const collwise_action *action;
    if (of->next == of->count) {
        return 0;
    }
    of->requests.count = 0;
    do {
        action = &of->actions[of->next++];
        start_action(of, action);
    } while (action->kind != COLLWISE_NEXT_ROUND && of->next < of->count);
    return 1;
}
