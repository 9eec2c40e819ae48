/* Under a point-to-point model, the order in which engine.c handles processes and messages does not depend on any
 * time. One pass over the words of the programs therefore serves several sets of parameters: where messages.c has a
 * time, there is a row of times here, one for each set. Only the order in which a process takes what it waited for
 * depends on the set. Every time is computed by the same operations in the same order as in messages.c.
 *
 * If all messages leave when they are sent, no time depends on the order of the processes either. Each then begins
 * soon after the first process that sends it a message, so that few messages are under way together.
 *
 * A message needs one row: when it arrives, or when the side is there that came first, if it waits for the other. */
#include "models.h"
#include "play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The most sets that are played in one pass, and the entries of a table by pair for all of them together. */
enum { MAX_SETS = 64, MAX_ENTRIES = 1 << 21 };

/* A message of which only one side is there. */
typedef struct {
    int32_t next; /* in a list of a connection's or of free messages */
    int32_t source;
    uint32_t size, slot; /* of the request of that side */
    uint8_t is_sent, is_local, protocol;
} half;

typedef struct {
    int32_t first, last; /* halves: sends, or receives; NONE or undefined if there are none */
} pending;

typedef struct {
    uint32_t size;
    uint8_t is_known, is_awaited;
    uint8_t counts; /* taking it can change times: not so for a send that was complete at once */
    uint8_t is_receive, is_local, is_free;
} state;

typedef struct {
    const schedule_word *next, *end; /* of its program */
    schedule_sources sources;        /* the same */
    size_t row;                      /* of its node's class, in tables by class and size */
    size_t first_slot;               /* a ring of mask + 1 requests, and one more for blocking operations */
    int32_t node, first_connection;
    uint32_t mask, made, unknown;
    uint8_t is_called; /* it has begun, or is among those that begin next */
} runner;

/* A table of all sets: the entry of a size for each of them, then those of the next size. */
typedef struct {
    const double *entries;
    double *own; /* what to free */
} table;

typedef struct pass pass;

/* A process goes on until it has to wait. */
typedef void (*step)(pass *of, int rank, int is_resumed);

struct pass {
    const schedule *played;
    const schedule_network *network; /* of the first set: nodes and protocols */
    size_t sets, classes, sizes;
    int procs;
    int shares_nodes;      /* some processes are on one node */
    int is_order_of_ranks; /* processes begin in it: messages that wait for their receives start in their order */
    table local[SCHEDULE_LOCAL_KINDS];
    table send, start, receive, handshake, answer, latency, transfer, gap, receive_gap;
    table local_latency, local_transfer;
    runner *runners;
    double *times_of; /* three rows by process: its clock, and when its port and its intake are free */
    state *states;
    double *done; /* rows by slot: when a request is complete */
    pending *connections;
    double *path_free; /* rows by connection, NULL unless processes share nodes */
    half *halves;
    double *times; /* rows by half */
    size_t half_count, half_room, time_room;
    int32_t free_half;
    uint32_t *chosen;
    moment *moments;
    int32_t *ready, *called; /* processes that can go on, and those that begin next */
    size_t ready_count, called_count;
    int unfinished;
    step go_on;
    jmp_buf give_up;
};

/* Functions for all sets are compiled several times: for one set, for MAX_SETS and for any number of sets, and for
 * processors with wider vectors. */
#define FOR_SETS static inline __attribute__((always_inline))

static void *held(pass *of, void *memory) {
    if (memory == NULL) {
        longjmp(of->give_up, 1);
    }
    return memory;
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

static void add_half_room(pass *of) {
    size_t room = of->half_room == 0 ? 16 : 2 * of->half_room;
    of->halves = held(of, realloc(of->halves, room * sizeof *of->halves));
    of->times = held(of, realloc(of->times, room * of->sets * sizeof *of->times));
    of->half_room = room;
}

/* Adds a half to the end of its connection's. */
static inline int32_t add_half(pass *of, pending *over, half added) {
    int32_t index = of->free_half;
    if (index != NONE) {
        of->free_half = of->halves[index].next;
    } else {
        if (of->half_count == of->half_room) {
            add_half_room(of);
        }
        index = (int32_t)of->half_count++;
    }
    added.next = NONE;
    of->halves[index] = added;
    if (over->first == NONE) {
        over->first = index;
    } else {
        of->halves[over->last].next = index;
    }
    over->last = index;
    return index;
}

/* Takes the first half of a connection, whose times stay until the next one is added. */
static inline half take_half(pass *of, pending *over) {
    int32_t index = over->first;
    half found = of->halves[index];
    over->first = found.next;
    of->halves[index].next = of->free_half;
    of->free_half = index;
    return found;
}

static void complete(pass *of, int rank, uint32_t slot) {
    runner *one = &of->runners[rank];
    state *request = &of->states[one->first_slot + slot];
    request->is_known = 1;
    if (request->is_awaited) {
        request->is_awaited = 0;
        if (--one->unknown == 0) {
            of->ready[of->ready_count++] = rank;
        }
    }
}

/* The rows of a process. */
enum { CLOCK, PORT_FREE, INTAKE_FREE, ROWS };

FOR_SETS double *process_row(const pass *of, int rank, int row, size_t sets) {
    return of->times_of + ((size_t)rank * ROWS + (size_t)row) * sets;
}

FOR_SETS double *row_of(double *rows, size_t number, size_t sets) { return rows + number * sets; }
FOR_SETS const double *entry_of(const table *one, size_t index, size_t sets) { return one->entries + index * sets; }

static inline size_t pair_of(const pass *of, int source, int destination, uint32_t size) {
    return of->runners[source].row * of->classes + of->runners[destination].row + size;
}

/* The message may leave at the times in `at`, which become those of its arrival. */
FOR_SETS void start(pass *of, int source, int destination, uint32_t connection, uint32_t size, int is_local,
                    double *restrict at, size_t sets) {
    if (is_local) {
        size_t index = of->runners[source].row + size;
        double *restrict path = row_of(of->path_free, connection, sets);
        const double *transfer = entry_of(&of->local_transfer, index, sets);
        const double *latency = entry_of(&of->local_latency, index, sets);
        for (size_t i = 0; i < sets; i++) {
            path[i] = play_later(at[i], path[i]) + transfer[i];
            at[i] = path[i] + latency[i];
        }
        return;
    }
    size_t index = pair_of(of, source, destination, size);
    double *restrict port = process_row(of, source, PORT_FREE, sets);
    const double *gap = entry_of(&of->gap, index, sets), *latency = entry_of(&of->latency, index, sets);
    const double *transfer = entry_of(&of->transfer, index, sets);
    for (size_t i = 0; i < sets; i++) {
        double leaves = play_later(port[i], at[i]);
        port[i] = leaves + gap[i];
        at[i] = leaves + latency[i] + transfer[i];
    }
}

/* Both sides of a message are there: `arrival` has when it arrives, `posted` when its receive was posted. */
FOR_SETS void finish(pass *of, half sent, int destination, uint32_t receive_slot, const double *arrival,
                     const double *posted, size_t sets) {
    size_t slot = of->runners[destination].first_slot + receive_slot;
    double *received = row_of(of->done, slot, sets);
    for (size_t i = 0; i < sets; i++) {
        received[i] = arrival[i] >= posted[i] ? arrival[i] : posted[i];
    }
    if (sent.protocol == SCHEDULE_CONFIRMED) {
        double *answered = row_of(of->done, of->runners[sent.source].first_slot + sent.slot, sets);
        const double *latency = sent.is_local
                                    ? entry_of(&of->local_latency, of->runners[sent.source].row + sent.size, sets)
                                    : entry_of(&of->answer, pair_of(of, sent.source, destination, sent.size), sets);
        for (size_t i = 0; i < sets; i++) {
            answered[i] = received[i] + latency[i];
        }
        complete(of, sent.source, sent.slot);
    }
    of->states[slot].is_free =
        sent.protocol == SCHEDULE_RENDEZVOUS && of->network->protocol[sent.size] == SCHEDULE_DEFERRED;
    complete(of, destination, receive_slot);
}

/* The same for a message that waited for its receive: `sent_at` has when it was sent. */
FOR_SETS void start_and_finish(pass *of, half sent, int destination, uint32_t connection, uint32_t receive_slot,
                               const double *sent_at, const double *posted, size_t sets) {
    double arrival[MAX_SETS];
    for (size_t i = 0; i < sets; i++) {
        arrival[i] = posted[i] > sent_at[i] ? posted[i] : sent_at[i];
    }
    if (!sent.is_local) {
        const double *handshake = entry_of(&of->handshake, pair_of(of, sent.source, destination, sent.size), sets);
        for (size_t i = 0; i < sets; i++) {
            arrival[i] += handshake[i];
        }
    }
    start(of, sent.source, destination, connection, sent.size, sent.is_local, arrival, sets);
    if (sent.protocol == SCHEDULE_RENDEZVOUS) {
        size_t slot = of->runners[sent.source].first_slot + sent.slot;
        memcpy(row_of(of->done, slot, sets), arrival, sets * sizeof *arrival);
        complete(of, sent.source, sent.slot);
    }
    finish(of, sent, destination, receive_slot, arrival, posted, sets);
}

/* The connection to a process from one that lies so far ahead of it. */
static inline uint32_t connection_of(pass *of, int destination, uint32_t relative) {
    const runner *to = &of->runners[destination];
    const schedule_source *found = schedule_find_source(to->sources, relative);
    if (found->source_and_one == 0) {
        longjmp(of->give_up, 1);
    }
    return (uint32_t)to->first_connection + found->number;
}

static inline void call(pass *of, int rank) {
    if (!of->runners[rank].is_called) {
        of->runners[rank].is_called = 1;
        of->called[of->called_count++] = rank;
    }
}

FOR_SETS void post_send(pass *of, half sent, int destination, uint32_t relative, size_t sets) {
    uint32_t connection = connection_of(of, destination, relative);
    pending *over = &of->connections[connection];
    const double *clock = process_row(of, sent.source, CLOCK, sets);
    if (sent.protocol == SCHEDULE_EAGER || sent.protocol == SCHEDULE_DEFERRED) {
        of->states[of->runners[sent.source].first_slot + sent.slot].counts = 0;
        complete(of, sent.source, sent.slot);
    }
    if (over->first == NONE || of->halves[over->first].is_sent) {
        int32_t added = add_half(of, over, sent);
        double *at = row_of(of->times, (size_t)added, sets);
        if (!of->is_order_of_ranks) {
            call(of, destination);
        }
        memcpy(at, clock, sets * sizeof *at);
        if (!play_waits_for_receive(sent.protocol)) {
            start(of, sent.source, destination, connection, sent.size, sent.is_local, at, sets);
        }
        return;
    }
    int32_t index = over->first;
    half posted = take_half(of, over);
    if (posted.size != sent.size) {
        longjmp(of->give_up, 1);
    }
    const double *posted_at = row_of(of->times, (size_t)index, sets);
    if (play_waits_for_receive(sent.protocol)) {
        start_and_finish(of, sent, destination, connection, posted.slot, clock, posted_at, sets);
        return;
    }
    double arrival[MAX_SETS];
    memcpy(arrival, clock, sets * sizeof *arrival);
    start(of, sent.source, destination, connection, sent.size, sent.is_local, arrival, sets);
    finish(of, sent, destination, posted.slot, arrival, posted_at, sets);
}

FOR_SETS void post_receive(pass *of, half posted, int destination, uint32_t relative, size_t sets) {
    uint32_t connection = connection_of(of, destination, relative);
    pending *over = &of->connections[connection];
    const double *clock = process_row(of, destination, CLOCK, sets);
    if (over->first == NONE || !of->halves[over->first].is_sent) {
        int32_t index = add_half(of, over, posted);
        memcpy(row_of(of->times, (size_t)index, sets), clock, sets * sizeof *clock);
        return;
    }
    int32_t index = over->first;
    half sent = take_half(of, over);
    if (sent.size != posted.size) {
        longjmp(of->give_up, 1);
    }
    const double *sent_at = row_of(of->times, (size_t)index, sets);
    if (play_waits_for_receive(sent.protocol)) {
        start_and_finish(of, sent, destination, connection, posted.slot, sent_at, clock, sets);
    } else {
        finish(of, sent, destination, posted.slot, sent_at, clock, sets);
    }
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

FOR_SETS void spend(pass *of, int rank, const double *seconds, size_t sets) {
    double *restrict clock = process_row(of, rank, CLOCK, sets);
    for (size_t i = 0; i < sets; i++) {
        clock[i] += seconds[i];
    }
}

/* A process takes a complete request under the sets from `from` to before `to`. */
FOR_SETS void take(pass *of, int rank, uint32_t slot, size_t from, size_t to, size_t sets) {
    const runner *now = &of->runners[rank];
    const state *request = &of->states[now->first_slot + slot];
    const double *done = row_of(of->done, now->first_slot + slot, sets);
    double *clock = process_row(of, rank, CLOCK, sets);
    if (!request->is_receive) {
        for (size_t i = from; i < to; i++) {
            clock[i] = play_later(done[i], clock[i]);
        }
        return;
    }
    size_t index = now->row + request->size;
    const double *overhead = entry_of(&of->receive, index, sets);
    if (request->is_local) {
        for (size_t i = from; i < to; i++) {
            clock[i] = play_later(done[i], clock[i]) + (request->is_free ? 0 : overhead[i]);
        }
        return;
    }
    double *intake = process_row(of, rank, INTAKE_FREE, sets);
    const double *gap = entry_of(&of->receive_gap, index, sets);
    for (size_t i = from; i < to; i++) {
        double seconds = play_later(intake[i] + gap[i], done[i]);
        intake[i] = seconds;
        clock[i] = play_later(seconds, clock[i]) + (request->is_free ? 0 : overhead[i]);
    }
}

/* Whether requests are complete in their order under every set. */
FOR_SETS int is_in_order(const pass *of, size_t first_slot, uint32_t count, size_t sets) {
    for (uint32_t i = 1; i < count; i++) {
        const double *one = of->done + (first_slot + of->chosen[i - 1]) * sets;
        const double *other = of->done + (first_slot + of->chosen[i]) * sets;
        for (size_t set = 0; set < sets; set++) {
            if (one[set] > other[set]) {
                return 0;
            }
        }
    }
    return 1;
}

/* Takes `count` complete requests from the one with number `first` on, under each set the earliest first. */
FOR_SETS void take_all(pass *of, int rank, uint32_t first, uint32_t count, size_t sets) {
    const runner *now = &of->runners[rank];
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = (first + i) & now->mask;
        of->chosen[chosen] = slot;
        chosen += of->states[now->first_slot + slot].counts;
    }
    if (chosen < 2 || is_in_order(of, now->first_slot, chosen, sets)) {
        for (uint32_t i = 0; i < chosen; i++) {
            take(of, rank, of->chosen[i], 0, sets, sets);
        }
        return;
    }
    for (size_t set = 0; set < sets; set++) {
        for (uint32_t i = 0; i < chosen; i++) {
            double seconds = of->done[(now->first_slot + of->chosen[i]) * sets + set];
            of->moments[i] = (moment){seconds, of->chosen[i]};
        }
        const moment *sorted = play_sort(of->moments, of->moments + chosen, chosen);
        for (uint32_t i = 0; i < chosen; i++) {
            take(of, rank, sorted[i].number, set, set + 1, sets);
        }
    }
}

static void await(pass *of, runner *now, uint32_t slot) {
    state *request = &of->states[now->first_slot + slot];
    if (!request->is_known) {
        request->is_awaited = 1;
        now->unknown++;
    }
}

/* Does what a word says, or finishes it after a wait. Returns 0 if the process has to stop here. */
FOR_SETS int perform(pass *of, int rank, schedule_word word, int is_resumed, size_t sets) {
    runner *now = &of->runners[rank];
    schedule_kind kind = schedule_kind_of(word);
    uint32_t size = schedule_size_of(word), count = schedule_peer_of(word);
    if (schedule_is_local(kind)) {
        spend(of, rank, entry_of(&of->local[kind - SCHEDULE_REDUCE], size, sets), sets);
        return 1;
    }
    if (kind == SCHEDULE_WAIT) {
        uint32_t first = now->made - size;
        for (uint32_t i = 0; i < count && !is_resumed; i++) {
            await(of, now, (first + i) & now->mask);
        }
        if (now->unknown > 0) {
            return 0;
        }
        take_all(of, rank, first, count, sets);
        return 1;
    }
    int peer = schedule_peer(of->played, rank, count);
    int is_local = of->shares_nodes && of->network->node_of[peer] == now->node;
    peer = of->procs < of->played->procs ? peer % of->procs : peer;
    int is_blocking = kind == SCHEDULE_SEND || kind == SCHEDULE_RECEIVE;
    int is_receive = schedule_is_receive(kind);
    uint32_t slot = is_blocking ? now->mask + 1 : now->made & now->mask;
    if (!is_resumed) {
        of->states[now->first_slot + slot] =
            (state){.size = size, .counts = 1, .is_receive = (uint8_t)is_receive, .is_local = (uint8_t)is_local};
        now->made += (uint32_t)!is_blocking;
        half side = {.source = rank, .size = size, .slot = slot, .is_sent = (uint8_t)!is_receive};
        if (is_receive) {
            post_receive(of, side, rank, count, sets);
        } else {
            spend(of, rank, entry_of(kind == SCHEDULE_SEND ? &of->send : &of->start, now->row + size, sets), sets);
            side.is_local = (uint8_t)is_local;
            side.protocol = play_protocol_of(kind, of->network->protocol[size]);
            post_send(of, side, peer, schedule_back(of->played, count), sets);
        }
    }
    if (is_blocking) {
        if (!is_resumed) {
            await(of, now, slot);
        }
        if (now->unknown > 0) {
            return 0;
        }
        if (of->states[now->first_slot + slot].counts) {
            take(of, rank, slot, 0, sets, sets);
        }
    }
    return 1;
}

FOR_SETS void go_on_under(pass *of, int rank, int is_resumed, size_t sets) {
    runner *now = &of->runners[rank];
    for (; now->next < now->end; now->next++, is_resumed = 0) {
        if (!perform(of, rank, *now->next, is_resumed, sets)) {
            return;
        }
    }
    of->unfinished--;
}

static void go_on_under_one(pass *of, int rank, int is_resumed) { go_on_under(of, rank, is_resumed, 1); }

FOR_SETS void go_on_under_several(pass *of, int rank, int is_resumed) {
    if (of->sets == MAX_SETS) {
        go_on_under(of, rank, is_resumed, MAX_SETS);
    } else {
        go_on_under(of, rank, is_resumed, of->sets);
    }
}

static void go_on_by_two(pass *of, int rank, int is_resumed) { go_on_under_several(of, rank, is_resumed); }

#ifdef __x86_64__
/* The same for processors that add and compare four and eight times at once. */
static __attribute__((target("avx2"))) void go_on_by_four(pass *of, int rank, int is_resumed) {
    go_on_under_several(of, rank, is_resumed);
}

static __attribute__((target("avx512f"))) void go_on_by_eight(pass *of, int rank, int is_resumed) {
    go_on_under_several(of, rank, is_resumed);
}
#endif

static step step_for(size_t sets) {
    if (sets == 1) {
        return go_on_under_one;
    }
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        return go_on_by_eight;
    }
    if (__builtin_cpu_supports("avx2")) {
        return go_on_by_four;
    }
#endif
    return go_on_by_two;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* The entries of all sets next to one another; of a single one where they are. */
static void set_table(pass *of, table *made, const schedule_network *const *networks, size_t offset, size_t count) {
    const double *const *first = (const double *const *)((const char *)networks[0] + offset);
    made->entries = *first;
    if (of->sets == 1) {
        return;
    }
    made->own = held(of, malloc((count * of->sets + 1) * sizeof *made->own));
    made->entries = made->own;
    for (size_t set = 0; set < of->sets; set++) {
        const double *from = *(const double *const *)((const char *)networks[set] + offset);
        for (size_t i = 0; i < count; i++) {
            made->own[i * of->sets + set] = from[i];
        }
    }
}

#define SET_TABLE(name, count) set_table(of, &of->name, networks, offsetof(schedule_network, name##_seconds), count)

static void set_tables(pass *of, const schedule_network *const *networks) {
    size_t each = of->classes * of->sizes, pairs = of->classes * each;
    SET_TABLE(send, each);
    SET_TABLE(start, each);
    SET_TABLE(receive, each);
    for (size_t i = 0; i < SCHEDULE_LOCAL_KINDS; i++) {
        size_t place = offsetof(schedule_network, local_seconds) + i * sizeof *networks[0]->local_seconds;
        set_table(of, &of->local[i], networks, place, of->sizes);
    }
    SET_TABLE(handshake, pairs);
    SET_TABLE(answer, pairs);
    SET_TABLE(latency, pairs);
    SET_TABLE(transfer, pairs);
    SET_TABLE(gap, pairs);
    SET_TABLE(receive_gap, each);
    SET_TABLE(local_latency, each);
    SET_TABLE(local_transfer, each);
}

static void make_runners(pass *of) {
    size_t procs = (size_t)of->procs, slots = 0, most = 0, connections = 0;
    of->runners = held(of, calloc(procs, sizeof *of->runners));
    of->ready = held(of, malloc(procs * sizeof *of->ready));
    of->called = held(of, malloc(procs * sizeof *of->called));
    for (size_t rank = 0; rank < procs; rank++) {
        runner *one = &of->runners[rank];
        one->node = of->network->node_of[rank];
        one->row = (size_t)of->network->class_of[one->node] * of->sizes;
        const schedule_program *program = &of->played->programs[of->played->program_of[rank]];
        one->next = program->words;
        one->end = program->words + program->length;
        one->sources = program->sources;
        while (one->mask + 1 < program->requests) {
            one->mask = 2 * one->mask + 1;
        }
        one->first_slot = slots;
        one->first_connection = (int32_t)connections;
        connections += one->sources.count;
        slots += (size_t)one->mask + 2;
        most = one->mask >= most ? (size_t)one->mask + 1 : most;
    }
    if (connections > INT32_MAX) {
        longjmp(of->give_up, 1);
    }
    of->times_of = held(of, calloc(procs * ROWS * of->sets, sizeof *of->times_of));
    of->states = held(of, malloc(slots * sizeof *of->states));
    of->done = held(of, malloc(slots * of->sets * sizeof *of->done));
    of->chosen = held(of, malloc((most + 1) * sizeof *of->chosen));
    of->moments = held(of, malloc(2 * most * sizeof *of->moments));
    of->connections = held(of, malloc((connections + 1) * sizeof *of->connections));
    memset(of->connections, NONE, (connections + 1) * sizeof *of->connections);
    if (of->shares_nodes) {
        of->path_free = held(of, calloc((connections + 1) * of->sets, sizeof *of->path_free));
    }
}

static int some_share_a_node(const schedule *played, const schedule_network *network) {
    int rank = 0;
    while (rank < played->procs && network->node_of[rank] == rank) {
        rank++;
    }
    return rank < played->procs;
}

static int is_over(const pass *of) {
    size_t connections = 0;
    for (int rank = 0; rank < of->procs; rank++) {
        connections += of->runners[rank].sources.count;
    }
    size_t left = 0;
    while (left < connections && of->connections[left].first == NONE) {
        left++;
    }
    return of->unfinished == 0 && left == connections;
}

static void go_on_unless_stopped(pass *of, int rank, int is_resumed) {
    if (schedule_is_stopped()) {
        longjmp(of->give_up, 1);
    }
    of->go_on(of, rank, is_resumed);
}

/* A process begins, and others go on that wait for it. */
static void begin(pass *of, int rank) {
    go_on_unless_stopped(of, rank, 0);
    while (of->ready_count > 0) {
        go_on_unless_stopped(of, of->ready[--of->ready_count], 1);
    }
}

static int run(pass *of, const schedule_network *const *networks) {
    if (setjmp(of->give_up) != 0) {
        return 0;
    }
    set_tables(of, networks);
    make_runners(of);
    of->unfinished = of->procs;
    for (int rank = 0; rank < of->procs; rank++) {
        call(of, rank);
        while (of->called_count > 0) {
            begin(of, of->called[--of->called_count]);
        }
    }
    return is_over(of);
}

static void release(pass *of) {
    table *tables[] = {&of->send,        &of->start,         &of->receive,       &of->handshake,
                       &of->answer,      &of->latency,       &of->transfer,      &of->gap,
                       &of->receive_gap, &of->local_latency, &of->local_transfer};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        free(tables[i]->own);
    }
    for (size_t i = 0; i < SCHEDULE_LOCAL_KINDS; i++) {
        free(of->local[i].own);
    }
    free(of->runners);
    free(of->times_of);
    free(of->states);
    free(of->done);
    free(of->connections);
    free(of->path_free);
    free(of->halves);
    free(of->times);
    free(of->chosen);
    free(of->moments);
    free(of->ready);
    free(of->called);
}

int play_models_can(const schedule *played, const schedule_network *network) {
    return !played->has_strands && !played->has_windows && network->out_rate == NULL && network->switches == 0 &&
           network->sockets == 0;
}

/* Processes that differ in free work alone are alike (symmetry.c). */
static int same_work_is_free(const schedule_network *one, const schedule_network *other, size_t sizes) {
    for (int kind = 1; kind < SCHEDULE_LOCAL_KINDS; kind++) {
        for (size_t i = 0; i < sizes; i++) {
            if ((one->local_seconds[kind][i] > 0) != (other->local_seconds[kind][i] > 0)) {
                return 0;
            }
        }
    }
    return 1;
}

size_t play_models_together(const schedule *played, const schedule_network *const *networks, size_t count) {
    const schedule_network *first = networks[0];
    size_t entries = (size_t)first->classes * (size_t)first->classes * played->size_count, sets = 1;
    size_t most = entries * MAX_SETS <= MAX_ENTRIES ? MAX_SETS : MAX_ENTRIES / entries;
    for (; sets < count && sets < most; sets++) {
        const schedule_network *next = networks[sets];
        int is_alike = play_models_can(played, next) && next->nodes == first->nodes &&
                       next->classes == first->classes &&
                       memcmp(next->node_of, first->node_of, (size_t)played->procs * sizeof *next->node_of) == 0 &&
                       memcmp(next->class_of, first->class_of, (size_t)next->nodes * sizeof *next->class_of) == 0 &&
                       memcmp(next->protocol, first->protocol, played->size_count) == 0 &&
                       same_work_is_free(next, first, played->size_count);
        if (!is_alike) {
            break;
        }
    }
    return sets;
}

int play_by_models(const schedule *played, const schedule_network *const *networks, size_t count, int procs,
                   double *ends) {
    pass *of = calloc(1, sizeof *of);
    if (of == NULL) {
        return 0;
    }
    *of = (pass){.played = played,
                 .network = networks[0],
                 .sets = count,
                 .classes = (size_t)networks[0]->classes,
                 .sizes = played->size_count,
                 .procs = procs,
                 .shares_nodes = some_share_a_node(played, networks[0]),
                 .go_on = step_for(count),
                 .is_order_of_ranks = !play_all_are_eager(played, networks[0]),
                 .free_half = NONE};
    int done = run(of, networks);
    if (done) {
        for (int rank = 0; rank < procs; rank++) {
            memcpy(ends + (size_t)rank * count, process_row(of, rank, CLOCK, count), count * sizeof *ends);
        }
    }
    release(of);
    free(of);
    return done;
}
