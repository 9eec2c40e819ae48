#include "arrivals.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 1024 };

/* The proportions of a usual network, for recordings that no network is known for. */
static const arrivals_proportions USUAL = {
    .latency_bytes = 32 << 10, .local_latency_bytes = 4 << 10, .local_share = 0.125};

/* A side that waits for the other one. */
typedef struct waiting {
    struct waiting *next;
    int64_t request;
    uint64_t left; /* of a send, if the message leaves at once */
} waiting;

/* The messages from one process to another: a table by both. */
typedef struct {
    uint64_t ends_and_one; /* 0 where there is none */
    waiting *first, *last; /* sends, or receives */
    int are_sends;
} pair;

typedef struct {
    uint64_t *completes; /* of each request, UINT64_MAX where that is not known or no longer matters */
    size_t room;
    uint64_t reduces_until;
} process;

enum { REDUCTION = -1 };

typedef struct {
    uint64_t when, number; /* of equal times that posted first comes first */
    int64_t request;       /* or REDUCTION */
    int process;
} event;

struct arrivals {
    int procs;
    arrivals_proportions network;
    process *processes;
    const int *node_of;
    uint64_t *free_at; /* when each node, or process without nodes, has sent all messages so far */
    pair *pairs;
    size_t places, used;
    event *heap; /* from 1 on */
    size_t events, room;
    uint64_t now, posted;
    waiting *spare;
};

arrivals *recording_arrivals_make(int procs, const int *node_of, const arrivals_proportions *network) {
    arrivals *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    *made = (arrivals){
        .procs = procs, .network = network == NULL ? USUAL : *network, .node_of = node_of, .places = FIRST_PLACES};
    made->processes = calloc((size_t)procs, sizeof *made->processes);
    made->free_at = calloc((size_t)procs, sizeof *made->free_at);
    made->pairs = calloc(made->places, sizeof *made->pairs);
    if (made->processes == NULL || made->free_at == NULL || made->pairs == NULL) {
        recording_arrivals_free(made);
        return NULL;
    }
    return made;
}

static void free_list(waiting *list) {
    while (list != NULL) {
        waiting *next = list->next;
        free(list);
        list = next;
    }
}

void recording_arrivals_free(arrivals *of) {
    if (of == NULL) {
        return;
    }
    for (int i = 0; of->processes != NULL && i < of->procs; i++) {
        free(of->processes[i].completes);
    }
    for (size_t i = 0; of->pairs != NULL && i < of->places; i++) {
        free_list(of->pairs[i].first);
    }
    free_list(of->spare);
    free(of->processes);
    free(of->free_at);
    free(of->pairs);
    free(of->heap);
    free(of);
}

/* --- Pairs -------------------------------------------------------------------------------------------------------- */

static pair *place_of(pair *pairs, size_t places, uint64_t ends_and_one) {
    uint64_t hash = ends_and_one * 0x9e3779b97f4a7c15U;
    size_t at = (size_t)(hash >> 20) & (places - 1);
    while (pairs[at].ends_and_one != 0 && pairs[at].ends_and_one != ends_and_one) {
        at = (at + 1) & (places - 1);
    }
    return &pairs[at];
}

static int grow_pairs(arrivals *of) {
    size_t places = 2 * of->places;
    pair *longer = calloc(places, sizeof *longer);
    if (longer == NULL) {
        return 0;
    }
    for (size_t i = 0; i < of->places; i++) {
        if (of->pairs[i].ends_and_one != 0) {
            *place_of(longer, places, of->pairs[i].ends_and_one) = of->pairs[i];
        }
    }
    free(of->pairs);
    of->pairs = longer;
    of->places = places;
    return 1;
}

static pair *find_pair(arrivals *of, int source, int destination) {
    uint64_t key = ((uint64_t)source << 32 | (uint32_t)destination) + 1;
    pair *found = place_of(of->pairs, of->places, key);
    if (found->ends_and_one == 0) {
        if (2 * ++of->used > of->places) {
            if (!grow_pairs(of)) {
                return NULL;
            }
            found = place_of(of->pairs, of->places, key);
        }
        found->ends_and_one = key;
    }
    return found;
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static int is_earlier(const event *one, const event *other) {
    return one->when != other->when ? one->when < other->when : one->number < other->number;
}

static int add_event(arrivals *of, event added) {
    if (of->events + 1 >= of->room) {
        size_t room = 2 * of->room + 64;
        event *longer = realloc(of->heap, room * sizeof *longer);
        if (longer == NULL) {
            return 0;
        }
        of->heap = longer;
        of->room = room;
    }
    size_t at = ++of->events;
    for (; at > 1 && is_earlier(&added, &of->heap[at / 2]); at /= 2) {
        of->heap[at] = of->heap[at / 2];
    }
    of->heap[at] = added;
    return 1;
}

static event take_event(arrivals *of) {
    event first = of->heap[1], last = of->heap[of->events--];
    size_t at = 1;
    for (size_t child = 2; child <= of->events; child = 2 * at) {
        child += child < of->events && is_earlier(&of->heap[child + 1], &of->heap[child]);
        if (!is_earlier(&of->heap[child], &last)) {
            break;
        }
        of->heap[at] = of->heap[child];
        at = child;
    }
    of->heap[at] = last;
    return first;
}

int recording_arrivals_next(arrivals *of) {
    while (of->events > 0) {
        event first = take_event(of);
        if (first.request == REDUCTION || of->processes[first.process].completes[first.request] != UINT64_MAX) {
            of->now = first.when;
            return first.process;
        }
    }
    return -1;
}

int recording_arrivals_after_next(const arrivals *of) { return of->events > 0 ? of->heap[1].process : -1; }

/* --- Messages ----------------------------------------------------------------------------------------------------- */

static int complete(arrivals *of, int rank, int64_t request, uint64_t when) {
    process *one = &of->processes[rank];
    if (request < 0) {
        return 1;
    }
    if ((size_t)request >= one->room) {
        size_t room = 2 * (size_t)request + 16;
        uint64_t *longer = realloc(one->completes, room * sizeof *longer);
        if (longer == NULL) {
            return 0;
        }
        memset(longer + one->room, 0xff, (room - one->room) * sizeof *longer);
        one->completes = longer;
        one->room = room;
    }
    one->completes[request] = when;
    return add_event(of, (event){.when = when, .number = of->posted, .request = request, .process = rank});
}

static int is_local(const arrivals *of, const arrivals_side *side) {
    return of->node_of != NULL && of->node_of[side->source] == of->node_of[side->destination];
}

/* Lets a message leave from now on; returns the time at which it has left. */
static uint64_t leave(arrivals *of, const arrivals_side *side) {
    int node = of->node_of == NULL ? side->source : of->node_of[side->source];
    if (is_local(of, side)) {
        return of->now + (uint64_t)(of->network.local_share * (double)side->bytes);
    }
    of->free_at[node] = (of->free_at[node] < of->now ? of->now : of->free_at[node]) + side->bytes;
    return of->free_at[node];
}

static uint64_t latency_of(const arrivals *of, const arrivals_side *side) {
    return is_local(of, side) ? of->network.local_latency_bytes : of->network.latency_bytes;
}

static waiting *new_waiting(arrivals *of, int64_t request, uint64_t left) {
    waiting *made = of->spare;
    if (made != NULL) {
        of->spare = made->next;
    } else {
        made = malloc(sizeof *made);
    }
    if (made != NULL) {
        *made = (waiting){.request = request, .left = left};
    }
    return made;
}

/* Completes the request of the sender: that of an eager message when it is posted, that of another one, once both sides
 * are posted, when the message has left. Returns 0 if memory runs out. */
static int tell_sender(arrivals *of, const arrivals_side *side, int64_t other_request, int is_second, uint64_t left) {
    if (side->bytes < of->network.eager_bytes) {
        return !side->is_send || complete(of, side->source, side->request, of->now);
    }
    return !is_second || complete(of, side->source, side->is_send ? side->request : other_request, left);
}

int recording_arrivals_post(arrivals *of, const arrivals_side *side) {
    pair *over = find_pair(of, side->source, side->destination);
    of->posted++;
    if (over == NULL) {
        return 0;
    }
    waiting *other = over->first;
    int is_second = other != NULL && over->are_sends != side->is_send;
    int leaves_at_once = of->network.leaves_at_once && side->bytes < of->network.eager_bytes;
    uint64_t left = is_second ? other->left : 0;
    if (leaves_at_once ? side->is_send : is_second) {
        left = leave(of, side);
    }
    if (!tell_sender(of, side, is_second ? other->request : -1, is_second, left)) {
        return 0;
    }
    if (is_second) {
        over->first = other->next;
        other->next = of->spare;
        of->spare = other;
        uint64_t arrives = left + latency_of(of, side);
        return complete(of, side->destination, side->is_send ? other->request : side->request,
                        arrives < of->now ? of->now : arrives);
    }
    waiting *added = new_waiting(of, side->request, left);
    if (added == NULL) {
        return 0;
    }
    if (over->first == NULL) {
        over->first = added;
    } else {
        over->last->next = added;
    }
    over->last = added;
    over->are_sends = side->is_send;
    return 1;
}

int recording_arrivals_reduce(arrivals *of, int process, uint64_t bytes) {
    uint64_t until = of->now + (uint64_t)(of->network.reduce_share * (double)bytes);
    of->processes[process].reduces_until = until;
    return until == of->now ||
           add_event(of, (event){.when = until, .number = of->posted, .request = REDUCTION, .process = process});
}

int recording_arrivals_is_reducing(const arrivals *of, int process) {
    return of->processes[process].reduces_until > of->now;
}

int recording_arrivals_is_complete(const arrivals *of, int process, int64_t request, uint64_t *when) {
    if ((size_t)request >= of->processes[process].room) {
        return 0;
    }
    *when = of->processes[process].completes[request];
    return *when <= of->now;
}

void recording_arrivals_take(arrivals *of, int process, int64_t request) {
    of->processes[process].completes[request] = UINT64_MAX;
}
