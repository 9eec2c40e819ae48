/* Messages on ports and links, which divide their rate equally among the connections that use them.
 *
 * A message between two nodes passes the sending node's port, the links between the switches on its way, and the
 * receiving node's port. Its first byte reaches each stage a share of the latency after the previous one. A stage
 * serves one message of each connection at a time, in order. A message has passed a stage once the stage has spent its
 * time on it, and not before it has passed the previous one and the latency in between is over. Switches thus queue
 * what comes in faster than it goes out; their buffers are unlimited, unless messages between nodes are sent as packets
 * (packets.h).
 *
 * A stage's clock of virtual time counts the bytes that each of its messages has been served: it advances by rate /
 * messages, and a message ends when the clock has advanced by the message's size. A change of the number of messages
 * thus changes one rate and no message, so that the work for a message grows with the logarithm of their number.
 *
 * Events are handled in the order of time. At the same instant, stages that end messages come first, by number, then
 * arrivals at stages, in the order in which they were scheduled. A message sent at that instant sets out at once. */
#include "events.h"
#include "packets.h"
#include "play.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct transit {
    double passed_seconds;  /* when it passed the last of the stages that are behind it */
    double latency_seconds; /* until the next stage; all of it if there is one stage only */
    double bytes;           /* that each stage has to serve */
    double most_speed;      /* bytes per second which its connection alone has */
    uint32_t order;         /* its number among all */
    int32_t follower;       /* the message that its connection started next, or NONE */
    int32_t way[MOST_STAGES];
    uint8_t stages, behind; /* how many there are on its way, and how many of them it has passed */
    /* Bits: which stages its first byte has reached, which have served the one before, which have served it. */
    uint8_t reached, free, served;
};

/* A time, or a virtual one, above a number: keys of heaps, in the order of times, and of numbers at the same time. */
typedef unsigned __int128 key;

/* Times are not negative, so that their bits have their order. */
static key make_key(double time, uint64_t number) {
    uint64_t bits;
    memcpy(&bits, &time, sizeof bits);
    return (key)bits << 64 | number;
}

static double time_of(key one) {
    uint64_t bits = (uint64_t)(one >> 64);
    double time;
    memcpy(&time, &bits, sizeof time);
    return time;
}

/* A port or link. */
typedef struct {
    double rate;            /* bytes per second */
    double speed;           /* of the virtual clock: bytes per second of each message */
    double most_speed;      /* which one connection alone has */
    double virtual_seconds; /* reading of the virtual clock, in bytes, at `seconds` */
    double seconds;
    double burst_bytes, tokens; /* token bucket, and what was in it at `seconds` if the stage is idle */
    double next_seconds;        /* when the next message ends */
    int32_t opposite;           /* the stage whose acknowledgements pass here, or NONE */
    size_t messages;            /* which it serves */
    key *heap;                  /* what ends next, by virtual end and order: see served_message */
    size_t count, room;
} stage;

struct ports {
    stage *stages;
    size_t stage_count;
    key *busy; /* a heap of the stages with messages, by their next end and number; BRANCHES are below each */
    size_t busy_count;
    int32_t *place_of; /* each stage's place in it, or NONE */
    events events;
    packets *packets; /* NULL if buffers are unlimited */
    uint32_t started;
};

/* --- The heap of busy stages -------------------------------------------------------------------------------------- */

static void put_stage(ports *to, size_t place, key one) {
    to->busy[place] = one;
    to->place_of[(uint32_t)one] = (int32_t)place;
}

enum { BRANCHES = 4 };

/* Moves a stage, from where there is a gap at `place`, to where it belongs. */
static void settle_at(ports *to, size_t place, key one) {
    for (; place > 0 && one < to->busy[(place - 1) / BRANCHES]; place = (place - 1) / BRANCHES) {
        put_stage(to, place, to->busy[(place - 1) / BRANCHES]);
    }
    for (size_t child = BRANCHES * place + 1; child < to->busy_count; child = BRANCHES * place + 1) {
        size_t end = child + BRANCHES < to->busy_count ? child + BRANCHES : to->busy_count;
        for (size_t other = child + 1; other < end; other++) {
            child = to->busy[other] < to->busy[child] ? other : child;
        }
        if (to->busy[child] > one) {
            break;
        }
        put_stage(to, place, to->busy[child]);
        place = child;
    }
    put_stage(to, place, one);
}

/* Puts a stage where it belongs, nowhere if it has no messages. */
static void settle(ports *to, int32_t number) {
    const stage *at = &to->stages[number];
    int32_t place = to->place_of[number];
    if (at->count > 0) {
        settle_at(to, place == NONE ? to->busy_count++ : (size_t)place, make_key(at->next_seconds, (uint32_t)number));
    } else if (place != NONE) {
        to->place_of[number] = NONE;
        if ((size_t)place < --to->busy_count) {
            settle_at(to, (size_t)place, to->busy[to->busy_count]);
        }
    }
}

/* --- A stage's messages ------------------------------------------------------------------------------------------- */

/* An entry of a stage's heap is the end of a message, or the time from which its sender no longer waits for it. */
enum { RELEASES_SENDER, ENDS_MESSAGE };

static key make_served(double virtual_end, uint32_t order, int32_t message, uint32_t kind) {
    return make_key(virtual_end, (uint64_t)order << 32 | (uint32_t)message << 1 | kind);
}

static int32_t served_message(key served) { return (int32_t)((uint32_t)served >> 1); }
static int releases_sender(key served) { return ((uint32_t)served & ENDS_MESSAGE) == 0; }

static void push_message(play *all, stage *at, key added) {
    at->heap = play_grown(all, at->heap, at->count, &at->room, sizeof *at->heap);
    size_t place = at->count++;
    for (; place > 0 && added < at->heap[(place - 1) / 2]; place = (place - 1) / 2) {
        at->heap[place] = at->heap[(place - 1) / 2];
    }
    at->heap[place] = added;
}

static key pop_message(stage *at) {
    key first = at->heap[0], moved = at->heap[--at->count];
    size_t place = 0;
    for (size_t child = 1; child < at->count; child = 2 * place + 1) {
        child += child + 1 < at->count && at->heap[child + 1] < at->heap[child];
        if (at->heap[child] > moved) {
            break;
        }
        at->heap[place] = at->heap[child];
        place = child;
    }
    at->heap[place] = moved;
    return first;
}

/* --- The virtual clock -------------------------------------------------------------------------------------------- */

static void advance(stage *at, double seconds) {
    if (at->messages > 0) {
        at->virtual_seconds += (seconds - at->seconds) * at->speed;
    } else {
        at->tokens = play_earlier(at->burst_bytes, at->tokens + (seconds - at->seconds) * at->rate);
    }
    at->seconds = seconds;
}

/* Adjusts the clock's speed to the messages there are. */
static void adjust(play *all, stage *at) {
    if (at->messages == 0) {
        at->virtual_seconds = 0;
        return;
    }
    int acknowledges = at->opposite != NONE && all->ports->stages[at->opposite].messages > 0;
    double rate = acknowledges ? at->rate / (1 + all->network->acknowledgement_share) : at->rate;
    at->speed = play_earlier(rate / (double)at->messages, at->most_speed);
    double left = time_of(at->heap[0]) - at->virtual_seconds;
    at->next_seconds = at->seconds + play_later(left, 0) / at->speed;
}

/* The same after a change of the number of messages, which may begin or end acknowledgements in the other direction.
 * The stage itself is not settled yet. */
static void adjust_both(play *all, stage *at, size_t messages_before) {
    adjust(all, at);
    if (at->opposite != NONE && all->network->acknowledgement_share > 0 &&
        (messages_before == 0) != (at->messages == 0)) {
        stage *opposite = &all->ports->stages[at->opposite];
        advance(opposite, at->seconds);
        if (opposite->messages > 0) {
            adjust(all, opposite);
            settle(all->ports, at->opposite);
        }
    }
}

/* --- A message on its way ----------------------------------------------------------------------------------------- */

static double latency_of(const play *all, const message *one) {
    if (is_local(all, one)) {
        return all->network->local_latency_seconds[class_index(all, one->source, one->size)];
    }
    return all->network->latency_seconds[pair_index(all, one)];
}

static double transfer_of(const play *all, const message *one) {
    if (is_local(all, one)) {
        return all->network->local_transfer_seconds[class_index(all, one->source, one->size)];
    }
    return all->network->transfer_seconds[pair_index(all, one)];
}

/* Whether its sender waits until what is left of it fits into the connection's buffer. */
static int is_buffered(const play *all, const message *one) {
    return one->protocol == SCHEDULE_RENDEZVOUS && all->network->send_buffer_bytes > 0 && !is_local(all, one);
}

/* A stage, which the caller then settles, begins to serve a message: it is its connection's turn. */
static void serve(play *all, int32_t index, int place, double seconds) {
    const transit *way = &all->transits[index];
    stage *at = &all->ports->stages[way->way[place]];
    size_t messages = at->messages;
    advance(at, seconds);
    double free_bytes = play_earlier(at->tokens, way->bytes);
    at->tokens -= free_bytes;
    at->most_speed = way->most_speed;
    at->messages++;
    double virtual_end = at->virtual_seconds + way->bytes - free_bytes;
    push_message(all, at, make_served(virtual_end, way->order, index, ENDS_MESSAGE));
    if (place == 0 && is_buffered(all, &all->messages[index])) {
        double released = play_later(at->virtual_seconds, virtual_end - all->network->send_buffer_bytes);
        push_message(all, at, make_served(released, way->order, index, RELEASES_SENDER));
    }
    adjust_both(all, at, messages);
}

/* Every stage that has served the message, and that comes next, has been passed. */
static void pass(play *all, int32_t index, double seconds) {
    transit *way = &all->transits[index];
    double latency = way->latency_seconds;
    while (way->behind < way->stages && (way->served >> way->behind & 1)) {
        double after_previous = way->behind > 0 ? way->passed_seconds + latency : 0;
        way->passed_seconds = play_later(seconds, after_previous);
        way->behind++;
        int left = way->behind == 1 && !is_buffered(all, &all->messages[index]);
        if (left && !all->network->senders_wait_for_arrival) {
            play_message_left(all, index, way->passed_seconds);
        }
    }
    if (way->behind == way->stages) {
        if (way->follower == NONE) {
            all->connections[all->messages[index].connection].latest = NONE;
        }
        double arrival = way->passed_seconds + (way->stages == 1 ? latency : 0);
        if (all->network->senders_wait_for_arrival) {
            play_message_left(all, index, arrival);
        }
        play_message_arrived(all, index, arrival);
    }
}

/* Handles what ends first at a stage. After a message the next one of its connection follows if it is here already. */
static void end_first(play *all, int32_t number, double seconds) {
    stage *at = &all->ports->stages[number];
    size_t messages = at->messages;
    advance(at, seconds);
    key ended = pop_message(at);
    int32_t index = served_message(ended);
    at->virtual_seconds = play_later(at->virtual_seconds, time_of(ended));
    if (releases_sender(ended)) {
        adjust(all, at);
        settle(all->ports, number);
        play_message_left(all, index, seconds);
        return;
    }
    at->messages--;
    adjust_both(all, at, messages);
    transit *way = &all->transits[index];
    int place = 0;
    while (way->way[place] != number) {
        place++;
    }
    way->served |= (uint8_t)(1 << place);
    int32_t follower = way->follower;
    if (follower != NONE) {
        all->transits[follower].free |= (uint8_t)(1 << place);
    }
    pass(all, index, seconds);
    if (follower != NONE && (all->transits[follower].reached >> place & 1)) {
        serve(all, follower, place, seconds);
    }
    settle(all->ports, number);
}

static void schedule_event(play *all, double seconds, int32_t index, uint8_t stage) {
    if (!events_add(&all->ports->events, (event){seconds, index, stage})) {
        play_fail(all, "out of memory");
    }
}

/* The first byte reaches a stage. */
static void reach(play *all, int32_t index, int place, double seconds) {
    transit *way = &all->transits[index];
    way->reached |= (uint8_t)(1 << place);
    if (place + 1 < way->stages) {
        schedule_event(all, seconds + way->latency_seconds, index, (uint8_t)(place + 1));
    }
    if (way->free >> place & 1) {
        serve(all, index, place, seconds);
        settle(all->ports, way->way[place]);
    }
}

enum { OUT, IN, PORTS };

static int32_t port(int node, int direction) { return node * PORTS + direction; }

static int32_t uplink(const play *all, int group, int direction) {
    return port(all->network->nodes + all->network->nodes, 0) + group * PORTS + direction;
}

/* The memory that processes of a node share when they exchange messages. */
static int32_t memory(const play *all, int node) { return port(all->network->nodes, 0) + node; }

/* Up to the lowest level where both nodes belong to one group, and down again. */
static void find_way(const play *all, const message *one, transit *over) {
    const schedule_network *network = all->network;
    int from = network->node_of[one->source], to = network->node_of[one->destination], up = 0;
    if (from == to) {
        over->way[0] = memory(all, from);
        over->stages = 1;
        return;
    }
    while (up < network->levels &&
           network->group_of[up * network->nodes + from] != network->group_of[up * network->nodes + to]) {
        up++;
    }
    over->way[0] = port(from, OUT);
    for (int level = 0; level < up; level++) {
        over->way[1 + level] = uplink(all, network->group_of[level * network->nodes + from], OUT);
        over->way[2 * up - level] = uplink(all, network->group_of[level * network->nodes + to], IN);
    }
    over->way[2 * up + 1] = port(to, IN);
    over->stages = (uint8_t)(2 * up + 2);
}

int ports_find_way(play *all, const message *one, int32_t *way, double *latency_seconds) {
    transit over = {.follower = NONE};
    find_way(all, one, &over);
    memcpy(way, over.way, sizeof over.way);
    *latency_seconds = latency_of(all, one);
    return over.stages;
}

/* A path within a node that no other process uses: one message after the other. */
static void start_on_own_path(play *all, int32_t index, double seconds) {
    message *one = &all->messages[index];
    double *free_seconds = &all->local_free_seconds[one->connection];
    *free_seconds = play_later(seconds, *free_seconds) + transfer_of(all, one);
    double arrival = *free_seconds + latency_of(all, one);
    play_message_left(all, index, all->network->senders_wait_for_arrival ? arrival : *free_seconds);
    play_message_arrived(all, index, arrival);
}

/* Its connection's next message sets out. */
static void set_out(play *all, int32_t index, double seconds) {
    int32_t *latest = &all->connections[all->messages[index].connection].latest;
    transit *way = &all->transits[index];
    way->order = all->ports->started++;
    way->free = UINT8_MAX;
    if (*latest != NONE) {
        way->free = all->transits[*latest].served;
        all->transits[*latest].follower = index;
    }
    *latest = index;
    reach(all, index, 0, seconds);
}

void ports_start(play *all, int32_t index, double seconds) {
    const message *one = &all->messages[index];
    if (is_local(all, one) && !(all->network->memory_rate > 0)) {
        start_on_own_path(all, index, seconds);
        return;
    }
    if (all->ports->packets != NULL && !is_local(all, one)) {
        packets_start(all, all->ports->packets, index, seconds);
        return;
    }
    transit *way = &all->transits[index];
    *way = (transit){.follower = NONE};
    find_way(all, one, way);
    way->latency_seconds = latency_of(all, one) / (way->stages > 1 ? way->stages - 1 : 1);
    double transfer = transfer_of(all, one);
    way->bytes = all->network->load_bytes[one->size];
    way->most_speed = way->bytes > 0 && transfer > 0 ? way->bytes / transfer : INFINITY;
    if (seconds > all->now) {
        schedule_event(all, seconds, index, 0);
    } else {
        set_out(all, index, seconds);
    }
}

void ports_run(play *all) {
    ports *to = all->ports;
    while (to->busy_count > 0 || to->events.filled != 0) {
        double end = to->busy_count > 0 ? time_of(to->busy[0]) : INFINITY;
        if (to->events.filled == 0 || end <= events_first_seconds(&to->events)) {
            all->now = end;
            end_first(all, (int32_t)(uint32_t)to->busy[0], end);
        } else {
            event next;
            if (!events_take(&to->events, &next)) {
                play_fail(all, "out of memory");
            }
            all->now = next.seconds;
            if (next.stage == 0) {
                set_out(all, next.message, next.seconds);
            } else if (next.stage >= PACKETS_START) {
                packets_handle(all, to->packets, next);
            } else {
                reach(all, next.message, next.stage, next.seconds);
            }
        }
        play_processes(all);
    }
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

void ports_make_room(play *all, size_t count) {
    all->transits = play_grown(all, all->transits, count, &all->transit_room, sizeof *all->transits);
}

ports *ports_make(play *all) {
    const schedule_network *network = all->network;
    if (all->played->messages > UINT32_MAX) {
        play_fail(all, "more than 2^32 messages");
    }
    all->ports = play_checked(all, calloc(1, sizeof *all->ports));
    ports *to = all->ports;
    to->stage_count = (size_t)uplink(all, network->groups, 0);
    to->stages = play_checked(all, calloc(to->stage_count + 1, sizeof *to->stages));
    to->busy = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->busy));
    to->place_of = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->place_of));
    for (size_t i = 0; i < to->stage_count; i++) {
        to->place_of[i] = NONE;
        to->stages[i] = (stage){.rate = network->memory_rate, .opposite = NONE};
    }
    for (int node = 0; node < network->nodes; node++) {
        int class = network->class_of[node];
        for (int direction = OUT; direction < PORTS; direction++) {
            stage *at = &to->stages[port(node, direction)];
            at->rate = direction == OUT ? network->out_rate[class] : network->in_rate[class];
            at->opposite = port(node, 1 - direction);
            at->burst_bytes = at->tokens = network->burst_bytes[class];
        }
    }
    for (int group = 0; group < network->groups; group++) {
        for (int direction = OUT; direction < PORTS; direction++) {
            stage *at = &to->stages[uplink(all, group, direction)];
            at->rate = network->uplink_rate[group];
            at->opposite = uplink(all, group, 1 - direction);
        }
    }
    if (network->buffer_bytes > 0) {
        to->packets = packets_make(all, to->stage_count, &to->events);
        for (size_t i = 0; i < to->stage_count; i++) {
            const stage *at = &to->stages[i];
            packets_set_link(to->packets, i, at->rate, at->burst_bytes, at->opposite);
        }
    }
    return to;
}

void ports_free(ports *to) {
    if (to == NULL) {
        return;
    }
    for (size_t i = 0; to->stages != NULL && i < to->stage_count; i++) {
        free(to->stages[i].heap);
    }
    free(to->stages);
    free(to->busy);
    free(to->place_of);
    events_free(&to->events);
    packets_free(to->packets);
    free(to);
}
