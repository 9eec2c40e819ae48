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
 * A node's interface reads or writes the node's memory as long as a port has messages. If the ports, and the messages
 * and copies within the node, want more than the memory's rate together, all of them are slower by the same factor.
 *
 * An answer to a synchronous message takes no room at a port, but leaves its node after what the port's queue has: of
 * each connection that sends there as much as TCP keeps there.
 *
 * Events are handled in the order of time. At the same instant, stages that end messages come first, by number, then
 * arrivals at stages and forks that go on, in the order in which they were scheduled. A message sent at that instant
 * sets out at once. */
#include "events.h"
#include "packets.h"
#include "play.h"
#include "stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct transit {
    double passed_seconds;  /* when it passed the last of the stages that are behind it */
    double latency_seconds; /* until the next stage; all of it if there is one stage only */
    double bytes;           /* that each stage has to serve */
    double max_speed;       /* bytes per second which its connection alone has */
    uint32_t order;         /* its number among all */
    int32_t follower;       /* the message that its connection started next, or NONE */
    int32_t first, last;    /* stages: the sender's port or the memory, and the receiver's port */
    uint32_t first_link;    /* between them: its place among those of the network's routes */
    uint32_t free, served;  /* bits: which stages have served the one before, and which have served it */
    uint8_t stages;         /* how many there are on its way */
    uint8_t reached;        /* how many of them its first byte has reached, */
    uint8_t behind;         /* and how many it has passed */
    uint8_t slowest;        /* of these, the last that served it later than the one before had let it come */
};
_Static_assert(sizeof(transit) <= LINE_BYTES, "a message on its way takes more than a line");

/* A port or link. */
typedef struct {
    served served;          /* its messages, and what ends next, by virtual end and order (served_key) */
    double rate;            /* bytes per second; less while the opposite direction has messages */
    double speed;           /* of the virtual clock: bytes per second of each message */
    double max_speed;       /* which one connection alone has */
    double virtual_seconds; /* reading of the virtual clock, in bytes, at `seconds` */
    double seconds;
    double burst_bytes, tokens; /* token bucket, and what was in it at `seconds` if the stage is idle */
    uint32_t count;             /* of messages */
    int32_t opposite;           /* the stage whose acknowledgements pass here, or NONE */
} stage;
_Static_assert(sizeof(stage) == 2 * LINE_BYTES, "a stage takes more than two lines");

/* When the latest message at a stage began or ended there, and its connection. */
typedef struct {
    double seconds;
    int32_t connection;
} stage_event;

/* A message whose first byte comes to another node, and the next one of those. */
typedef struct {
    double seconds;
    int32_t next;
} coming;

typedef struct {
    int32_t first, last; /* NONE or undefined if there are none */
} inbox;

struct ports {
    stage *stages;
    size_t stage_count;
    int32_t *used; /* those that have been set, when they were first used: of thousands some collectives use few */
    size_t used_count;
    busy_stages busy; /* those with messages */
    events events;
    packets *packets; /* NULL if buffers are unlimited */
    inbox *inboxes;   /* of nodes that are played one after another (one_way.h), else NULL */
    coming *coming;   /* then: one for each message */
    size_t coming_room;
    uint32_t started;
    /* For comparisons only, NULL otherwise: each stage's latest event, when each message set out, and when each
     * connection's last message ended, by stage on its way. */
    stage_event *latest_events;
    double *set_out_seconds, *ended_seconds;
    size_t set_out_room;
};

/* --- Stages ------------------------------------------------------------------------------------------------------- */

enum { OUT, IN, PORTS };

/* The kinds of events besides those of stages, and of packets. */
enum { FORK_GOES_ON = UINT8_MAX - 1, ANSWER_LEAVES };

static int32_t port(int node, int direction) { return node * PORTS + direction; }

/* The memory that processes of a node share when they exchange messages. */
static int32_t memory(const play *all, int node) { return port(all->network->nodes, 0) + node; }

/* The stage of messages that leave a socket for others of its node. */
static int32_t socket_port(const play *all, int node, int socket) {
    return memory(all, all->network->nodes) + node * all->network->sockets + socket;
}

static int32_t link_stage(const play *all, int32_t link) {
    return socket_port(all, all->network->nodes, 0) + (all->link_of == NULL ? link : all->link_of[link]);
}

static void set_stage(play *all, int32_t number) {
    const schedule_network *network = all->network;
    stage *at = &all->ports->stages[number];
    *at = (stage){.served.queue_room = 1, .opposite = NONE};
    at->served.queue = &at->served.first_key;
    if (number < memory(all, 0)) {
        int class = network->class_of[number / PORTS], direction = number % PORTS;
        at->rate = direction == OUT ? network->out_rate[class] : network->in_rate[class];
        at->opposite = port(number / PORTS, 1 - direction);
        at->burst_bytes = at->tokens = network->burst_bytes[class];
    } else if (number < socket_port(all, 0, 0)) {
        at->rate = network->memory_rate;
    } else if (number < socket_port(all, network->nodes, 0)) {
        at->rate = network->cross_rate;
    } else {
        int32_t link = number - socket_port(all, network->nodes, 0);
        at->rate = network->link_rate[link];
        at->opposite = link_stage(all, link ^ 1);
    }
}

static stage *use(play *all, int32_t number) {
    ports *of = all->ports;
    if (of->busy.place_of[number] == UNUSED) {
        of->busy.place_of[number] = NONE;
        of->used[of->used_count++] = number;
        set_stage(all, number);
    }
    return &of->stages[number];
}

static int has_messages(const ports *of, int32_t number) {
    return of->busy.place_of[number] != UNUSED && of->stages[number].count > 0;
}

/* Puts a stage, whose clock is adjusted, where it belongs among the busy ones. */
static void settle(ports *to, int32_t number) {
    const stage *at = &to->stages[number];
    if (at->count == 0) {
        play_busy_remove(&to->busy, number);
        return;
    }
    double left = play_later(key_time(served_next(&at->served)) - at->virtual_seconds, 0);
    play_busy_settle(&to->busy, number, at->seconds + left / at->speed);
}

/* --- Comparisons -------------------------------------------------------------------------------------------------- */

static size_t number_of(const play *all, const stage *at) { return (size_t)(at - all->ports->stages); }

static void compare_tokens(play *all, const stage *at, double one, double other) {
    if (at->burst_bytes > 0) {
        play_compare(all, COMPARED_TOKENS, number_of(all, at), 0, one / at->rate, other / at->rate);
    }
}

/* A connection's number at a stage of its way. */
static size_t turn_of(const play *all, int32_t index, int place) {
    return (size_t)all->messages[index].connection * COMPARED_STAGES + (size_t)place;
}

/* When a message reaches a stage, and when its connection's message before it ended there. */
static void compare_turn(play *all, int32_t index, int place) {
    if (all->log != NULL) {
        double reached = all->ports->set_out_seconds[index] + place * all->transits[index].latency_seconds;
        size_t turn = turn_of(all, index, place);
        play_compare(all, COMPARED_TURN, turn, all->messages[index].size, reached, all->ports->ended_seconds[turn]);
    }
}

static void compare_event_at(play *all, size_t number, const message *one, int is_end, double seconds) {
    stage_event *before = &all->ports->latest_events[number];
    if (before->connection != one->connection) {
        uint32_t detail = ((uint32_t)(2 * one->connection + is_end) * 0x9e3779b1U ^ one->size) >> 4;
        play_compare(all, COMPARED_EVENT, number, detail, before->seconds, seconds);
    }
    *before = (stage_event){seconds, one->connection};
}

/* An event, unless it follows one of the same connection, whose comparisons of turns have the two. Events of a port are
 * also events of the memory that it slows. */
static void compare_event(play *all, const stage *at, const message *one, int is_end, double seconds) {
    if (all->log != NULL) {
        size_t number = number_of(all, at);
        compare_event_at(all, number, one, is_end, seconds);
        if (all->network->memory_share_of_ports > 0 && number < (size_t)memory(all, 0)) {
            compare_event_at(all, (size_t)memory(all, (int)number / PORTS), one, is_end, seconds);
        }
    }
}

/* --- The virtual clock -------------------------------------------------------------------------------------------- */

static void advance(play *all, stage *at, double seconds) {
    if (at->count > 0) {
        at->virtual_seconds += (seconds - at->seconds) * at->speed;
    } else {
        compare_tokens(all, at, at->tokens + (seconds - at->seconds) * at->rate, at->burst_bytes);
        at->tokens = play_earlier(at->burst_bytes, at->tokens + (seconds - at->seconds) * at->rate);
    }
    at->seconds = seconds;
}

/* The part of what they want that the users of a node's memory get, besides the limit of each of them. */
static double part_of_memory(const play *all, int node) {
    const ports *of = all->ports;
    if (!has_messages(of, memory(all, node))) {
        return 1;
    }
    const stage *at = &of->stages[memory(all, node)];
    double wanted = (double)at->count * play_earlier(at->max_speed, at->rate);
    for (int direction = 0; direction < PORTS; direction++) {
        int32_t number = port(node, direction);
        wanted += has_messages(of, number) ? of->stages[number].rate * all->network->memory_share_of_ports : 0;
    }
    return wanted > at->rate ? at->rate / wanted : 1;
}

/* The clock's speed with the messages there are, of which there is at least one. */
static double speed_of(const play *all, const stage *at) {
    int acknowledges = at->opposite != NONE && has_messages(all->ports, at->opposite);
    double rate = acknowledges ? at->rate / (1 + all->network->acknowledgement_share) : at->rate;
    if (all->network->memory_share_of_ports > 0) {
        int32_t number = (int32_t)number_of(all, at);
        if (number < memory(all, 0)) {
            rate *= part_of_memory(all, number / PORTS);
        } else if (number < socket_port(all, 0, 0)) {
            return play_earlier(at->max_speed, rate) * part_of_memory(all, number - memory(all, 0));
        }
    }
    return play_earlier(at->count == 1 ? rate : rate / (double)at->count, at->max_speed);
}

/* Adjusts the clock's speed to the messages there are. */
static void adjust(play *all, stage *at) {
    if (at->count == 0) {
        at->virtual_seconds = 0;
        return;
    }
    at->speed = speed_of(all, at);
}

/* The same for the users of a node's memory, one of which has changed. */
static void adjust_users_of_memory(play *all, int node, int32_t changed, double seconds) {
    const int32_t users[] = {port(node, OUT), port(node, IN), memory(all, node)};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++) {
        stage *at = &all->ports->stages[users[i]];
        if (users[i] != changed && has_messages(all->ports, users[i]) && speed_of(all, at) != at->speed) {
            advance(all, at, seconds);
            adjust(all, at);
            settle(all->ports, users[i]);
        }
    }
}

/* Adjusts a stage after a change of the number of its messages, which may begin or end acknowledgements in the other
 * direction, and the stages that depend on it. The stage itself is not settled yet. */
static void adjust_all(play *all, stage *at, uint32_t count_before) {
    int begins_or_ends = (count_before == 0) != (at->count == 0);
    adjust(all, at);
    if (at->opposite != NONE && all->network->acknowledgement_share > 0 && begins_or_ends) {
        stage *opposite = use(all, at->opposite);
        advance(all, opposite, at->seconds);
        if (opposite->count > 0) {
            adjust(all, opposite);
            settle(all->ports, at->opposite);
        }
    }
    if (all->network->memory_share_of_ports > 0) {
        int32_t number = (int32_t)number_of(all, at);
        if (number < memory(all, 0) && begins_or_ends) {
            adjust_users_of_memory(all, number / PORTS, number, at->seconds);
        } else if (number >= memory(all, 0) && number < socket_port(all, 0, 0)) {
            adjust_users_of_memory(all, number - memory(all, 0), number, at->seconds);
        }
    }
}

/* --- A message on its way ----------------------------------------------------------------------------------------- */

static double latency_of(const play *all, const message *one) {
    if (one->protocol == SCHEDULE_OWN_COPY) {
        return 0;
    }
    if (one->is_local) {
        return play_local_latency(all, one);
    }
    return between_nodes_latency(all, one);
}

static double transfer_of(const play *all, const message *one) {
    if (one->protocol == SCHEDULE_OWN_COPY) {
        return all->network->local_seconds[SCHEDULE_MOVE - SCHEDULE_REDUCE][one->size];
    }
    if (one->is_local) {
        return play_local_transfer(all, one);
    }
    return all->network->transfer_seconds[pair_index(all, one)];
}

/* The stage at a place of a message's way. */
static int32_t stage_at(const play *all, const transit *way, int place) {
    if (place == 0) {
        return way->first;
    }
    return place == way->stages - 1 ? way->last
                                    : link_stage(all, all->network->route_links[way->first_link + (uint32_t)place - 1]);
}

/* Whether its sender waits until what is left of it fits into the connection's buffer. */
static int is_buffered(const play *all, const message *one) {
    return one->protocol == SCHEDULE_RENDEZVOUS && all->network->send_buffer_bytes > 0 && !one->is_local;
}

/* A stage, whose clock shows this time, gets a message: it is its connection's turn. */
static void add_message(play *all, stage *at, int32_t index, int place) {
    const transit *way = &all->transits[index];
    compare_event(all, at, &all->messages[index], 0, at->seconds);
    compare_tokens(all, at, at->tokens, way->bytes);
    double free_bytes = play_earlier(at->tokens, way->bytes);
    at->tokens -= free_bytes;
    at->max_speed = way->max_speed;
    double virtual_end = at->virtual_seconds + way->bytes - free_bytes;
    at->count++;
    play_served_push(all, &at->served, served_key(virtual_end, way->order, index, ENDS_MESSAGE));
    if (place == 0 && is_buffered(all, &all->messages[index])) {
        double released = play_later(at->virtual_seconds, virtual_end - all->network->send_buffer_bytes);
        play_served_push(all, &at->served, served_key(released, way->order, index, RELEASES_SENDER));
    }
}

/* A stage begins to serve a message, besides those that it serves already. */
static void serve(play *all, int32_t index, int place, double seconds) {
    int32_t number = stage_at(all, &all->transits[index], place);
    stage *at = use(all, number);
    uint32_t count = at->count;
    advance(all, at, seconds);
    add_message(all, at, index, place);
    adjust_all(all, at, count);
    settle(all->ports, number);
}

/* Times that differ by less than this share are the same but for rounding. */
#define SAME_SHARE 1e-12

/* Every stage that has served the message, and that comes next, has been passed. */
static void pass(play *all, int32_t index, double seconds) {
    transit *way = &all->transits[index];
    double latency = way->latency_seconds;
    while (way->behind < way->stages && (way->served >> way->behind & 1)) {
        double after_previous = way->behind > 0 ? way->passed_seconds + latency : 0;
        play_compare(all, COMPARED_PASSED, turn_of(all, index, way->behind), 0, seconds, after_previous);
        if (way->behind > 0 && seconds - after_previous > SAME_SHARE * seconds) {
            way->slowest = way->behind;
        }
        way->passed_seconds = play_later(seconds, after_previous);
        way->behind++;
        int left = way->behind == 1 && !is_buffered(all, &all->messages[index]);
        if (left && !all->network->senders_wait_for_arrival) {
            all->tell->message_left(all, index, way->passed_seconds);
        }
    }
    if (way->behind == way->stages) {
        if (way->follower == NONE) {
            all->connections[all->messages[index].connection].latest = NONE;
        }
        double arrival = way->passed_seconds + (way->stages == 1 ? latency : 0);
        if (all->network->senders_wait_for_arrival) {
            all->tell->message_left(all, index, arrival);
        }
        all->tell->message_arrived(all, index, arrival);
    }
}

/* Handles what ends first at a stage. After a message the next one of its connection follows if it is here already. */
static void end_first(play *all, int32_t number, double seconds) {
    stage *at = &all->ports->stages[number];
    uint32_t count = at->count;
    advance(all, at, seconds);
    key ended = play_served_pop(&at->served);
    int32_t index = served_message(ended);
    compare_event(all, at, &all->messages[index], 1, seconds);
    at->virtual_seconds = play_later(at->virtual_seconds, key_time(ended));
    if (served_releases_sender(ended)) {
        adjust(all, at);
        settle(all->ports, number);
        all->tell->message_left(all, index, seconds);
        return;
    }
    at->count--;
    at->virtual_seconds = at->count > 0 ? at->virtual_seconds : 0;
    transit *way = &all->transits[index];
    int place = 0;
    while (stage_at(all, way, place) != number) {
        place++;
    }
    way->served |= UINT32_C(1) << place;
    if (all->log != NULL) {
        all->ports->ended_seconds[turn_of(all, index, place)] = seconds;
    }
    int32_t follower = way->follower;
    if (follower != NONE) {
        transit *next = &all->transits[follower];
        next->free |= UINT32_C(1) << place;
        if (next->reached > place) {
            compare_turn(all, follower, place);
            add_message(all, at, follower, place);
        }
    }
    adjust_all(all, at, count);
    settle(all->ports, number);
    pass(all, index, seconds);
}

static void schedule_event(play *all, double seconds, int32_t index, uint8_t stage) {
    if (!play_events_add(&all->ports->events, (event){seconds, index, stage})) {
        play_fail(all, "out of memory");
    }
}

/* The first byte reaches the port of another node, which is played later. */
static void put_into_inbox(play *all, int32_t index, double seconds) {
    ports *to = all->ports;
    inbox *at = &to->inboxes[all->processes[all->messages[index].destination].node];
    to->coming[index] = (coming){.seconds = seconds, .next = NONE};
    if (at->first == NONE) {
        at->first = index;
    } else {
        to->coming[at->last].next = index;
    }
    at->last = index;
}

void play_ports_use_inboxes(play *all) {
    size_t nodes = (size_t)all->network->nodes;
    all->ports->inboxes = play_checked(all, malloc(nodes * sizeof *all->ports->inboxes));
    memset(all->ports->inboxes, NONE, nodes * sizeof *all->ports->inboxes);
}

void play_ports_begin_node(play *all, int32_t node) {
    ports *to = all->ports;
    all->now = to->events.last_seconds = 0;
    for (int32_t index = to->inboxes[node].first; index != NONE; index = to->coming[index].next) {
        schedule_event(all, to->coming[index].seconds, index, 1);
    }
}

/* The first byte reaches a stage. */
static void reach(play *all, int32_t index, int place, double seconds) {
    transit *way = &all->transits[index];
    way->reached = (uint8_t)(place + 1);
    if (place + 1 < way->stages) {
        double next_seconds = seconds + way->latency_seconds;
        if (all->ports->inboxes != NULL && !all->messages[index].is_local) {
            put_into_inbox(all, index, next_seconds);
        } else {
            schedule_event(all, next_seconds, index, (uint8_t)(place + 1));
        }
    }
    if (way->free >> place & 1) {
        compare_turn(all, index, place);
        serve(all, index, place, seconds);
    }
}

static int crosses_shared_port(const play *all, const message *one) {
    return play_crosses(all, one) && all->network->cross_rate > 0;
}

static void find_way(play *all, const message *one, transit *over) {
    const schedule_network *network = all->network;
    int from = all->processes[one->source].node, to = all->processes[one->destination].node;
    int64_t links = 0;
    if (one->is_local) {
        int shares_port = crosses_shared_port(all, one);
        over->first = shares_port ? socket_port(all, from, network->socket_of[one->source]) : memory(all, from);
        over->last = memory(all, from);
        over->stages = shares_port && network->memory_rate > 0 ? 2 : 1;
        return;
    }
    if (network->switches > 0) {
        size_t route = route_index(all, one);
        over->first_link = (uint32_t)network->route_first[route];
        links = network->route_first[route + 1] - network->route_first[route];
        if (network->route_first[route + 1] > UINT32_MAX) {
            play_fail(all, "routes have more than 2^32 links together");
        }
    }
    if (links > MAX_STAGES - 2) {
        play_fail(all, "a route has more than %d links", MAX_STAGES - 2);
    }
    over->first = port(from, OUT);
    over->last = port(to, IN);
    over->stages = (uint8_t)(links + 2);
}

/* For packets. */
static int way_of(play *all, const message *one, int32_t *way, double *latency_seconds) {
    transit over = {.follower = NONE};
    find_way(all, one, &over);
    for (int place = 0; place < over.stages; place++) {
        way[place] = stage_at(all, &over, place);
    }
    *latency_seconds = latency_of(all, one);
    return over.stages;
}

/* Returns whether a message within a node has a path that it shares only with its own two processes' messages. */
static int has_own_path(const play *all, const message *one) {
    return one->is_local && !(all->network->memory_rate > 0) && !crosses_shared_port(all, one);
}

schedule_resource play_ports_waited_for(const play *all, int32_t index) {
    const message *one = &all->messages[index];
    if (all->ports == NULL || has_own_path(all, one) || one->protocol == SCHEDULE_FLAG ||
        (all->ports->packets != NULL && !one->is_local)) {
        return one->is_local ? SCHEDULE_MEMORY : SCHEDULE_PORT;
    }
    const transit *way = &all->transits[index];
    int32_t stage = stage_at(all, way, way->slowest);
    if (stage < memory(all, 0)) {
        return SCHEDULE_PORT;
    }
    if (stage < socket_port(all, 0, 0)) {
        return SCHEDULE_MEMORY;
    }
    return stage < socket_port(all, all->network->nodes, 0) ? SCHEDULE_SOCKETS : SCHEDULE_LINK;
}

/* A path within a node that no other process uses: one message after the other. */
static void start_on_own_path(play *all, int32_t index, double seconds) {
    message *one = &all->messages[index];
    double *free_seconds = &all->local_free_seconds[one->connection];
    play_compare(all, COMPARED_PATH, (size_t)one->connection, one->size, *free_seconds, seconds);
    *free_seconds = play_later(seconds, *free_seconds) + transfer_of(all, one);
    double arrival = *free_seconds + latency_of(all, one);
    all->tell->message_left(all, index, all->network->senders_wait_for_arrival ? arrival : *free_seconds);
    all->tell->message_arrived(all, index, arrival);
}

/* Its connection's next message sets out. */
static void set_out(play *all, int32_t index, double seconds) {
    int32_t *latest = &all->connections[all->messages[index].connection].latest;
    transit *way = &all->transits[index];
    way->order = all->ports->started++;
    if (all->log != NULL) {
        all->ports->set_out_seconds[index] = seconds;
    }
    way->free = UINT32_MAX;
    if (*latest != NONE) {
        way->free = all->transits[*latest].served;
        all->transits[*latest].follower = index;
    }
    *latest = index;
    reach(all, index, 0, seconds);
}

void play_ports_start(play *all, int32_t index, double seconds) {
    const message *one = &all->messages[index];
    if (has_own_path(all, one)) {
        start_on_own_path(all, index, seconds);
        return;
    }
    if (all->ports->packets != NULL && !one->is_local) {
        play_packets_start(all, all->ports->packets, index, seconds);
        return;
    }
    transit *way = &all->transits[index];
    *way = (transit){.follower = NONE};
    find_way(all, one, way);
    way->latency_seconds = latency_of(all, one) / (way->stages > 1 ? way->stages - 1 : 1);
    double transfer = transfer_of(all, one);
    way->bytes = one->protocol == SCHEDULE_OWN_COPY ? (double)all->played->sizes[one->size]
                                                    : all->network->load_bytes[one->size];
    way->max_speed = way->bytes > 0 && transfer > 0 ? way->bytes / transfer : INFINITY;
    if (seconds > all->now) {
        schedule_event(all, seconds, index, 0);
    } else {
        set_out(all, index, seconds);
    }
}

/* Until a port has sent what is in its queue. */
static double queue_seconds(play *all, const stage *at, double seconds) {
    double left = key_time(served_next(&at->served)) - at->virtual_seconds - (seconds - at->seconds) * at->speed;
    double queue = all->network->queue_bytes;
    play_compare(all, COMPARED_QUEUE, number_of(all, at), 0, left / at->rate, queue / at->rate);
    return play_later(play_earlier(left, queue), 0) / at->speed;
}

static void send_answer(play *all, int32_t index, double seconds) {
    const message *answered = &all->messages[index];
    int32_t number = port(all->processes[answered->destination].node, OUT);
    const stage *at = use(all, number);
    compare_event(all, at, answered, 0, seconds);
    all->tell->answer(all, index, at->count > 0 ? queue_seconds(all, at, seconds) : 0);
}

void play_ports_start_answer(play *all, int32_t index, double seconds) {
    if (all->messages[index].is_local || all->ports->packets != NULL || !(all->network->queue_bytes > 0)) {
        all->tell->answer(all, index, 0);
    } else if (seconds > all->now) {
        schedule_event(all, seconds, index, ANSWER_LEAVES);
    } else {
        send_answer(all, index, seconds);
    }
}

void play_ports_start_fork(play *all, int rank, double seconds) { schedule_event(all, seconds, rank, FORK_GOES_ON); }

void play_ports_run(play *all) {
    ports *to = all->ports;
    /* Every message is received before the last process ends. Of packets, a time-out may come that no longer matters.
     */
    double max_seconds = to->packets == NULL ? all->max_seconds : INFINITY;
    while (to->busy.count > 0 || to->events.filled != 0) {
        if (all->now > max_seconds) {
            all->result.is_longer = 1;
            longjmp(all->give_up, 1);
        }
        double end = to->busy.count > 0 ? key_time(to->busy.keys[0]) : INFINITY;
        if (to->events.filled == 0 || end <= play_events_first_seconds(&to->events)) {
            all->now = end;
            end_first(all, busy_stage(to->busy.keys[0]), end);
        } else {
            event next;
            if (!play_events_take(&to->events, &next)) {
                play_fail(all, "out of memory");
            }
            all->now = next.seconds;
            if (next.stage == 0) {
                set_out(all, next.message, next.seconds);
            } else if (next.stage == ANSWER_LEAVES) {
                send_answer(all, next.message, next.seconds);
            } else if (next.stage == FORK_GOES_ON) {
                all->tell->fork(all, next.message, next.seconds);
            } else if (next.stage >= PACKETS_START) {
                play_packets_handle(all, to->packets, next);
            } else {
                reach(all, next.message, next.stage, next.seconds);
            }
        }
        all->tell->go_on(all);
    }
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

void play_ports_make_room(play *all, size_t count) {
    all->transits = play_grown_lines(all, all->transits, count, &all->transit_room, sizeof *all->transits);
    ports *of = all->ports;
    if (of->inboxes != NULL) {
        of->coming = play_grown(all, of->coming, count, &of->coming_room, sizeof *of->coming);
    }
    if (all->log != NULL) {
        of->set_out_seconds =
            play_grown(all, of->set_out_seconds, count, &of->set_out_room, sizeof *of->set_out_seconds);
    }
}

ports *play_ports_make(play *all) {
    const schedule_network *network = all->network;
    if (all->played->messages > UINT32_MAX) {
        play_fail(all, "more than 2^32 messages");
    }
    all->ports = play_checked(all, calloc(1, sizeof *all->ports));
    ports *to = all->ports;
    to->stage_count =
        (size_t)socket_port(all, network->nodes, 0) + (size_t)(network->switches > 0 ? network->links : 0);
    to->stages = play_checked(all, aligned_alloc(LINE_BYTES, (to->stage_count + 1) * sizeof *to->stages));
    to->busy.keys = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->busy.keys));
    to->busy.place_of = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->busy.place_of));
    to->used = play_checked(all, malloc((to->stage_count + 1) * sizeof *to->used));
    if (all->log != NULL) {
        size_t turns = all->connection_count * COMPARED_STAGES;
        to->latest_events = play_checked(all, calloc(to->stage_count + 1, sizeof *to->latest_events));
        to->ended_seconds = play_checked(all, calloc(turns + 1, sizeof *to->ended_seconds));
    }
    for (size_t i = 0; i < to->stage_count; i++) {
        to->busy.place_of[i] = UNUSED;
    }
    if (network->buffer_bytes > 0) {
        to->packets = play_packets_make(all, to->stage_count, &to->events, way_of);
        for (size_t i = 0; i < to->stage_count; i++) {
            const stage *at = use(all, (int32_t)i);
            play_packets_set_link(to->packets, i, at->rate, at->burst_bytes, at->opposite);
        }
    }
    return to;
}

void play_ports_free(ports *to) {
    if (to == NULL) {
        return;
    }
    for (size_t i = 0; i < to->used_count; i++) {
        play_served_free(&to->stages[to->used[i]].served);
    }
    free(to->stages);
    free(to->used);
    free(to->busy.keys);
    free(to->busy.place_of);
    free(to->latest_events);
    free(to->set_out_seconds);
    free(to->ended_seconds);
    free(to->inboxes);
    free(to->coming);
    play_events_free(&to->events);
    play_packets_free(to->packets);
    free(to);
}
