/* Messages on ports and links, which divide their rate equally among the connections that use them.
 *
 * A message between two nodes passes the sending node's port, the links between the switches on its way, and the
 * receiving node's port. Its first byte reaches each stage a share of the latency after the previous one. A stage
 * serves one message of each connection at a time, in order. A message has passed a stage once the stage has spent its
 * time on it, and not before it has passed the previous one and the latency in between is over. Switches thus queue
 * what comes in faster than it goes out; their buffers are unlimited.
 *
 * A stage's clock of virtual time counts the bytes that each of its messages has been served: it advances by rate /
 * messages, and a message ends when the clock has advanced by the message's size. A change of the number of messages
 * thus changes one rate and no message, so that the work for a message grows with the logarithm of their number.
 *
 * Events are handled in the order of time. At the same instant, stages that end messages come first, by number, then
 * arrivals at stages, in the order in which they were scheduled. A message sent at that instant sets out at once. */
#include "play.h"

#include <math.h>
#include <stdlib.h>

struct transit {
    double passed_seconds; /* when it passed the last of the stages that are behind it */
    uint64_t order;        /* its number among all */
    uint32_t turn;         /* its number among those of its connection */
    int32_t follower;      /* the message that its connection started next, or NONE */
    int32_t way[MOST_STAGES];
    uint8_t stages, behind;  /* how many there are on its way, and how many of them it has passed */
    uint8_t reached, served; /* bits: which its first byte has reached, which have spent their time on it */
};

/* A port or link. */
typedef struct {
    double rate;            /* bytes per second */
    double speed;           /* of the virtual clock: bytes per second of each message */
    double most_speed;      /* which one connection alone has */
    double virtual_seconds; /* reading of the virtual clock, in bytes, at `seconds` */
    double seconds;
    double burst_bytes, tokens; /* token bucket, and what was in it at `seconds` if the stage is idle */
    int32_t opposite;           /* the stage whose acknowledgements pass here, or NONE */
    int32_t place;              /* in the heap of stages, or NONE */
    double next_seconds;        /* when the next message ends */
    struct served {
        double virtual_end;
        uint64_t order;
        int32_t message;
    } * heap; /* the messages that it serves, by virtual end */
    size_t count, room;
} stage;

typedef struct {
    double seconds;
    uint64_t order;
    int32_t message;
    uint8_t stage; /* of the message, that its first byte reaches; 0 starts it */
} event;

struct ports {
    stage *stages;
    size_t stage_count;
    int32_t *busy; /* stages with messages, a heap by the time of their next end */
    size_t busy_count;
    event *events; /* a heap by time */
    size_t event_count, event_room;
    uint64_t scheduled, started;
};

/* --- The heap of events --------------------------------------------------------------------------------------------
 */

static int event_before(const event *left, const event *right) {
    return left->seconds != right->seconds ? left->seconds < right->seconds : left->order < right->order;
}

static void schedule_event(play *all, double seconds, int32_t index, uint8_t stage) {
    ports *to = all->ports;
    to->events = play_grown(all, to->events, to->event_count, &to->event_room, sizeof *to->events);
    event added = {seconds, to->scheduled++, index, stage};
    size_t place = to->event_count++;
    for (; place > 0 && event_before(&added, &to->events[(place - 1) / 2]); place = (place - 1) / 2) {
        to->events[place] = to->events[(place - 1) / 2];
    }
    to->events[place] = added;
}

static event take_event(ports *to) {
    event first = to->events[0], moved = to->events[--to->event_count];
    size_t place = 0;
    for (size_t child = 1; child < to->event_count; child = 2 * place + 1) {
        if (child + 1 < to->event_count && event_before(&to->events[child + 1], &to->events[child])) {
            child++;
        }
        if (!event_before(&to->events[child], &moved)) {
            break;
        }
        to->events[place] = to->events[child];
        place = child;
    }
    to->events[place] = moved;
    return first;
}

/* --- The heap of busy stages -----------------------------------------------------------------------------------------
 */

static int stage_before(const ports *to, int32_t left, int32_t right) {
    double a = to->stages[left].next_seconds, b = to->stages[right].next_seconds;
    return a != b ? a < b : left < right;
}

static void put_stage(ports *to, size_t place, int32_t number) {
    to->busy[place] = number;
    to->stages[number].place = (int32_t)place;
}

/* Moves a stage, from where there is a gap at `place`, to where it belongs. */
static void settle_stage(ports *to, size_t place, int32_t number) {
    for (; place > 0 && stage_before(to, number, to->busy[(place - 1) / 2]); place = (place - 1) / 2) {
        put_stage(to, place, to->busy[(place - 1) / 2]);
    }
    for (size_t child = 2 * place + 1; child < to->busy_count; child = 2 * place + 1) {
        if (child + 1 < to->busy_count && stage_before(to, to->busy[child + 1], to->busy[child])) {
            child++;
        }
        if (!stage_before(to, to->busy[child], number)) {
            break;
        }
        put_stage(to, place, to->busy[child]);
        place = child;
    }
    put_stage(to, place, number);
}

static void remove_stage(ports *to, int32_t number) {
    size_t place = (size_t)to->stages[number].place;
    to->stages[number].place = NONE;
    if (place < --to->busy_count) {
        settle_stage(to, place, to->busy[to->busy_count]);
    }
}

/* --- A stage's messages ----------------------------------------------------------------------------------------------
 */

static int served_before(const struct served *left, const struct served *right) {
    return left->virtual_end != right->virtual_end ? left->virtual_end < right->virtual_end
                                                   : left->order < right->order;
}

static void push_message(play *all, stage *at, struct served added) {
    at->heap = play_grown(all, at->heap, at->count, &at->room, sizeof *at->heap);
    size_t place = at->count++;
    for (; place > 0 && served_before(&added, &at->heap[(place - 1) / 2]); place = (place - 1) / 2) {
        at->heap[place] = at->heap[(place - 1) / 2];
    }
    at->heap[place] = added;
}

static struct served pop_message(stage *at) {
    struct served first = at->heap[0], moved = at->heap[--at->count];
    size_t place = 0;
    for (size_t child = 1; child < at->count; child = 2 * place + 1) {
        if (child + 1 < at->count && served_before(&at->heap[child + 1], &at->heap[child])) {
            child++;
        }
        if (!served_before(&at->heap[child], &moved)) {
            break;
        }
        at->heap[place] = at->heap[child];
        place = child;
    }
    at->heap[place] = moved;
    return first;
}

/* --- The virtual clock -----------------------------------------------------------------------------------------------
 */

static void advance(stage *at, double seconds) {
    if (at->count > 0) {
        at->virtual_seconds += (seconds - at->seconds) * at->speed;
    } else {
        at->tokens = play_earlier(at->burst_bytes, at->tokens + (seconds - at->seconds) * at->rate);
    }
    at->seconds = seconds;
}

/* Adjusts the clock's speed to the messages there are, and the stage's place in the heap. */
static void adjust(play *all, int32_t number) {
    ports *to = all->ports;
    stage *at = &to->stages[number];
    if (at->count == 0) {
        at->virtual_seconds = 0;
        if (at->place != NONE) {
            remove_stage(to, number);
        }
        return;
    }
    int acknowledges = at->opposite != NONE && to->stages[at->opposite].count > 0;
    double rate = acknowledges ? at->rate / (1 + all->network->acknowledgement_share) : at->rate;
    at->speed = play_earlier(rate / (double)at->count, at->most_speed);
    double left = at->heap[0].virtual_end - at->virtual_seconds;
    at->next_seconds = at->seconds + play_later(left, 0) / at->speed;
    settle_stage(to, at->place == NONE ? to->busy_count++ : (size_t)at->place, number);
}

/* The same after a change of the number of messages, which may begin or end acknowledgements in the other direction. */
static void adjust_both(play *all, int32_t number, size_t count_before) {
    stage *at = &all->ports->stages[number];
    adjust(all, number);
    if (at->opposite != NONE && all->network->acknowledgement_share > 0 && (count_before == 0) != (at->count == 0)) {
        stage *opposite = &all->ports->stages[at->opposite];
        advance(opposite, at->seconds);
        if (opposite->count > 0) {
            adjust(all, at->opposite);
        }
    }
}

/* --- A message on its way --------------------------------------------------------------------------------------------
 */

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

/* The latency until the next stage; all of it if there is one stage only. */
static double latency_between(const play *all, int32_t index) {
    int stages = all->transits[index].stages;
    return latency_of(all, &all->messages[index]) / (stages > 1 ? stages - 1 : 1);
}

/* A stage begins to serve a message that was its connection's turn. */
static void serve(play *all, int32_t index, int place, double seconds) {
    const message *one = &all->messages[index];
    const transit *way = &all->transits[index];
    stage *at = &all->ports->stages[way->way[place]];
    double bytes = all->network->load_bytes[one->size], transfer = transfer_of(all, one);
    size_t count = at->count;
    advance(at, seconds);
    double free_bytes = play_earlier(at->tokens, bytes);
    at->tokens -= free_bytes;
    at->most_speed = bytes > 0 && transfer > 0 ? bytes / transfer : INFINITY;
    push_message(all, at, (struct served){at->virtual_seconds + bytes - free_bytes, way->order, index});
    adjust_both(all, way->way[place], count);
}

/* Every stage that has served the message, and that comes next, has been passed. */
static void pass(play *all, int32_t index, double seconds) {
    const message *one = &all->messages[index];
    transit *way = &all->transits[index];
    double latency = latency_between(all, index);
    while (way->behind < way->stages && (way->served >> way->behind & 1)) {
        double after_previous = way->behind > 0 ? way->passed_seconds + latency : 0;
        way->passed_seconds = play_later(seconds, after_previous);
        way->behind++;
        if (way->behind == 1 && !all->network->senders_wait_for_arrival) {
            play_message_left(all, one, way->passed_seconds);
        }
    }
    if (way->behind == way->stages) {
        double arrival = way->passed_seconds + (way->stages == 1 ? latency : 0);
        if (all->network->senders_wait_for_arrival) {
            play_message_left(all, one, arrival);
        }
        play_message_arrived(all, index, arrival);
    }
}

/* Ends the first message of a stage; the next one of its connection follows if it is here already. */
static void end_message(play *all, int32_t number, double seconds) {
    stage *at = &all->ports->stages[number];
    size_t count = at->count;
    advance(at, seconds);
    struct served ended = pop_message(at);
    at->virtual_seconds = play_later(at->virtual_seconds, ended.virtual_end);
    adjust_both(all, number, count);
    int32_t index = ended.message;
    transit *way = &all->transits[index];
    int place = 0;
    while (way->way[place] != number) {
        place++;
    }
    way->served |= (uint8_t)(1 << place);
    all->connections[all->messages[index].connection].served[place]++;
    int32_t follower = way->follower;
    pass(all, index, seconds);
    if (follower != NONE && (all->transits[follower].reached >> place & 1)) {
        serve(all, follower, place, seconds);
    }
}

/* The first byte reaches a stage. */
static void reach(play *all, int32_t index, int place, double seconds) {
    transit *way = &all->transits[index];
    way->reached |= (uint8_t)(1 << place);
    if (place + 1 < way->stages) {
        schedule_event(all, seconds + latency_between(all, index), index, (uint8_t)(place + 1));
    }
    if (all->connections[all->messages[index].connection].served[place] == way->turn) {
        serve(all, index, place, seconds);
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

/* A path within a node that no other process uses: one message after the other. */
static void start_on_own_path(play *all, int32_t index, double seconds) {
    message *one = &all->messages[index];
    connection *over = &all->connections[one->connection];
    over->free_seconds = play_later(seconds, over->free_seconds) + transfer_of(all, one);
    double arrival = over->free_seconds + latency_of(all, one);
    play_message_left(all, one, all->network->senders_wait_for_arrival ? arrival : over->free_seconds);
    play_message_arrived(all, index, arrival);
}

/* Its connection's next message sets out. */
static void set_out(play *all, int32_t index, double seconds) {
    connection *over = &all->connections[all->messages[index].connection];
    transit *way = &all->transits[index];
    way->turn = over->started++;
    way->order = all->ports->started++;
    /* The one before may be over, and its memory another message's. */
    for (int place = 0; place < way->stages; place++) {
        if (over->served[place] < way->turn) {
            all->transits[over->latest].follower = index;
        }
    }
    over->latest = index;
    reach(all, index, 0, seconds);
}

void ports_start(play *all, int32_t index, double seconds) {
    const message *one = &all->messages[index];
    if (is_local(all, one) && !(all->network->memory_rate > 0)) {
        start_on_own_path(all, index, seconds);
        return;
    }
    all->transits[index] = (transit){.follower = NONE};
    find_way(all, one, &all->transits[index]);
    if (seconds > all->now) {
        schedule_event(all, seconds, index, 0);
    } else {
        set_out(all, index, seconds);
    }
}

void ports_run(play *all) {
    ports *to = all->ports;
    while (to->busy_count > 0 || to->event_count > 0) {
        double end = to->busy_count > 0 ? to->stages[to->busy[0]].next_seconds : INFINITY;
        if (to->event_count == 0 || end <= to->events[0].seconds) {
            all->now = end;
            end_message(all, to->busy[0], end);
        } else {
            event next = take_event(to);
            all->now = next.seconds;
            if (next.stage == 0) {
                set_out(all, next.message, next.seconds);
            } else {
                reach(all, next.message, next.stage, next.seconds);
            }
        }
        play_processes(all);
    }
}

/* --- The whole -------------------------------------------------------------------------------------------------------
 */

void ports_make_room(play *all, size_t count) {
    all->transits = play_grown(all, all->transits, count, &all->transit_room, sizeof *all->transits);
}

ports *ports_make(play *all) {
    const schedule_network *network = all->network;
    all->ports = play_checked(all, calloc(1, sizeof *all->ports));
    ports *to = all->ports;
    to->stage_count = (size_t)uplink(all, network->groups, 0);
    to->stages = play_checked(all, calloc(to->stage_count + 1, sizeof *to->stages));
    to->busy = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->busy));
    for (size_t i = 0; i < to->stage_count; i++) {
        to->stages[i] = (stage){.rate = network->memory_rate, .opposite = NONE, .place = NONE};
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
    free(to->events);
    free(to);
}
