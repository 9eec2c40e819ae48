#include "packets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The sender's knowledge of a packet that it has sent. */
typedef enum { SENT, LOST, SENT_AGAIN, ACKNOWLEDGED } knowledge;

typedef struct {
    double bytes;
    uint8_t known; /* a `knowledge` */
    uint8_t has_arrived;
} segment;

/* A message in a connection, until it has arrived. */
typedef struct {
    double bytes; /* that have not been sent */
    uint64_t end; /* the number of the packet behind its last one, 0 as long as that is not sent */
    int32_t message;
    uint8_t has_left; /* its sender no longer waits for it */
} parcel;

/* Packets have numbers from 0 on: those below `oldest` are acknowledged, those from `next` on have not been sent. */
typedef struct {
    segment *segments; /* from `oldest` to `next` - 1, a ring */
    size_t segment_room;
    parcel *parcels; /* from `arriving` to `parcel_count` - 1, those from `sending` on not sent completely */
    size_t parcel_room, parcel_count, sending, arriving;
    uint64_t oldest, next, expected; /* the receiver has all packets below `expected` */
    uint64_t judged;                 /* below it no more packets are found to be lost by later ones */
    uint64_t latest[3];              /* the latest acknowledged packets, 1 more than their numbers */
    uint64_t repeat;                 /* no packet below it is lost and waits to be sent again */
    uint64_t recovered;              /* the window is not changed until all packets below are acknowledged */
    size_t under_way, lost;
    double window, threshold; /* packets; from the threshold on the window grows slowly */
    double latency_seconds, round_trip_seconds;
    double deadline, timer_seconds; /* when its time-out is, and when the next event is that looks at it */
    double time_out_factor;
    int32_t way[MAX_STAGES];
    int stages;
    int32_t next_in_line; /* at its node's port, NONE at the end */
    uint8_t is_in_line;
} flow;

/* A packet on its way, or its acknowledgement. */
typedef struct {
    double sent_seconds, passed_seconds; /* when it left its node and the last port behind it */
    double bytes;
    uint64_t number;
    int32_t flow; /* the next free packet, if it is free */
    uint8_t behind, is_repeated;
} packet;

typedef struct {
    double rate, burst_seconds;
    double free_seconds; /* when it has sent all that it has; earlier than now by what its token bucket contains */
    int32_t opposite;
    int32_t first_in_line, last_in_line; /* connections that may send, NONE if there are none */
    uint8_t is_sending;
} link;

struct packets {
    link *links;
    int32_t *flow_of; /* each connection's, NONE before its first message */
    flow *flows;
    size_t flow_count, flow_room;
    packet *packets;
    size_t packet_count, packet_room;
    int32_t free_packet;
    events *events;
    packets_way *way_of;
};

static void schedule_event(play *all, packets *of, double seconds, int32_t index, int kind) {
    if (!play_events_add(of->events, (event){seconds, index, (uint8_t)kind})) {
        play_fail(all, "out of memory");
    }
}

static segment *segment_at(const flow *of, uint64_t number) { return &of->segments[number & (of->segment_room - 1)]; }

/* --- Ports -------------------------------------------------------------------------------------------------------- */

/* A port sends a packet from now on or as soon as it can; returns when its first byte leaves. */
static double pass(const play *all, packets *of, link *at, packet *one, double latency_seconds) {
    double now = all->now, begin = play_later(now, at->free_seconds);
    int acknowledges = at->opposite != NONE && of->links[at->opposite].free_seconds > now;
    double rate = acknowledges ? at->rate / (1 + all->network->acknowledgement_share) : at->rate;
    at->free_seconds = play_later(at->free_seconds, now - at->burst_seconds) + one->bytes / rate;
    double after_previous = one->behind > 0 ? one->passed_seconds + latency_seconds : 0;
    one->passed_seconds = play_later(play_later(begin, at->free_seconds), after_previous);
    one->behind++;
    return begin;
}

/* In whole bytes: differences of times have rounding errors. */
static double room_in(const play *all, const link *at) {
    return all->network->buffer_bytes - round(play_later(at->free_seconds - all->now, 0) * at->rate);
}

static int may_send(const play *all, const flow *of) {
    double buffer = all->network->send_buffer_bytes;
    double most = buffer > 0 ? play_later(floor(buffer / all->network->packet_bytes), 1) : INFINITY;
    if ((double)of->under_way >= play_earlier(floor(of->window), most)) {
        return 0;
    }
    return of->lost > 0 || (of->sending < of->parcel_count && (double)(of->next - of->oldest) < most);
}

static void make_room_for_segment(play *all, flow *of) {
    size_t before = of->segment_room;
    if (of->next - of->oldest < before) {
        return;
    }
    size_t room = before == 0 ? 16 : 2 * before;
    segment *grown = play_checked(all, malloc(room * sizeof *grown));
    for (uint64_t number = of->oldest; number < of->next; number++) {
        grown[number & (room - 1)] = *segment_at(of, number);
    }
    free(of->segments);
    of->segments = grown;
    of->segment_room = room;
}

/* The packet to be sent next: one that was lost, or a new one. */
static uint64_t choose_packet(play *all, flow *of) {
    if (of->lost > 0) {
        while (segment_at(of, of->repeat)->known != LOST) {
            of->repeat++;
        }
        of->lost--;
        segment_at(of, of->repeat)->known = SENT_AGAIN;
        return of->repeat;
    }
    make_room_for_segment(all, of);
    parcel *from = &of->parcels[of->sending];
    double bytes = play_earlier(from->bytes, all->network->packet_bytes);
    *segment_at(of, of->next) = (segment){.bytes = bytes, .known = SENT};
    from->bytes -= bytes;
    of->next++;
    if (!(from->bytes > 0)) {
        from->end = of->next;
        of->sending++;
    }
    return of->next - 1;
}

static double time_out_of(const play *all, const flow *of) {
    return of->time_out_factor * (all->network->retransmission_seconds + of->round_trip_seconds);
}

static void set_timer(play *all, packets *of, int32_t index, double deadline) {
    flow *over = &of->flows[index];
    over->deadline = deadline;
    if (deadline < over->timer_seconds) {
        over->timer_seconds = deadline;
        schedule_event(all, of, deadline, index, PACKETS_TIME_OUT);
    }
}

static int32_t new_packet(play *all, packets *of) {
    int32_t index = of->free_packet;
    if (index != NONE) {
        of->free_packet = of->packets[index].flow;
        return index;
    }
    of->packets = play_grown(all, of->packets, of->packet_count, &of->packet_room, sizeof *of->packets);
    return (int32_t)of->packet_count++;
}

static void free_packet(packets *of, int32_t index) {
    of->packets[index].flow = of->free_packet;
    of->free_packet = index;
}

/* The sender of a message no longer waits when what has not been sent fits into the connection's buffer: from `begin`
 * on if that was so before the packet, or when the packet is sent. */
static void note_left(play *all, parcel *from, double bytes_before, double begin, const packet *sent) {
    double buffer = all->network->send_buffer_bytes;
    if (!from->has_left && from->bytes <= buffer && !all->network->senders_wait_for_arrival) {
        from->has_left = 1;
        all->tell->message_left(all, from->message, bytes_before <= buffer ? begin : sent->passed_seconds);
    }
}

static void send_packet(play *all, packets *of, int32_t flow_index) {
    flow *over = &of->flows[flow_index];
    if (over->oldest == over->next) {
        set_timer(all, of, flow_index, all->now + time_out_of(all, over));
    }
    parcel *from = over->lost > 0 ? NULL : &over->parcels[over->sending];
    double bytes_before = from == NULL ? 0 : from->bytes;
    uint64_t number = choose_packet(all, over);
    int32_t index = new_packet(all, of);
    packet *sent = &of->packets[index];
    *sent = (packet){.sent_seconds = all->now,
                     .bytes = segment_at(over, number)->bytes,
                     .number = number,
                     .flow = flow_index,
                     .is_repeated = segment_at(over, number)->known == SENT_AGAIN};
    over->under_way++;
    double latency = over->latency_seconds / (over->stages - 1);
    double begin = pass(all, of, &of->links[over->way[0]], sent, latency);
    schedule_event(all, of, begin + latency, index, PACKETS_REACH);
    if (from != NULL) {
        note_left(all, from, bytes_before, begin, sent);
    }
}

/* The connection gets in line at its node's port if it may send. */
static void get_in_line(const play *all, packets *of, int32_t index) {
    flow *over = &of->flows[index];
    link *at = &of->links[over->way[0]];
    if (!over->is_in_line && may_send(all, over)) {
        over->is_in_line = 1;
        over->next_in_line = NONE;
        *(at->first_in_line == NONE ? &at->first_in_line : &of->flows[at->last_in_line].next_in_line) = index;
        at->last_in_line = index;
    }
}

/* A node's port sends packets of its connections by turns, as long as it is free. */
static void use_port(play *all, packets *of, int32_t number) {
    link *at = &of->links[number];
    while (at->first_in_line != NONE && !at->is_sending) {
        int32_t index = at->first_in_line;
        flow *over = &of->flows[index];
        at->first_in_line = over->next_in_line;
        over->is_in_line = 0;
        if (!may_send(all, over)) {
            continue;
        }
        send_packet(all, of, index);
        get_in_line(all, of, index);
        if (at->free_seconds > all->now) {
            at->is_sending = 1;
            schedule_event(all, of, at->free_seconds, number, PACKETS_PORT_FREE);
        }
    }
}

static void send_what_may_go(play *all, packets *of, int32_t index) {
    get_in_line(all, of, index);
    use_port(all, of, of->flows[index].way[0]);
}

/* --- Receivers ---------------------------------------------------------------------------------------------------- */

/* Messages arrive in order, each with its last packet or that of an earlier message, whichever is later. */
static void arrive(play *all, flow *over, const packet *one) {
    if (one->number >= over->expected) {
        segment_at(over, one->number)->has_arrived = 1;
    }
    while (over->expected < over->next && segment_at(over, over->expected)->has_arrived) {
        over->expected++;
    }
    while (over->arriving < over->sending && over->parcels[over->arriving].end <= over->expected) {
        int32_t message = over->parcels[over->arriving++].message;
        if (all->network->senders_wait_for_arrival) {
            all->tell->message_left(all, message, one->passed_seconds);
        }
        all->tell->message_arrived(all, message, one->passed_seconds);
    }
    if (over->arriving == over->parcel_count) {
        over->arriving = over->sending = over->parcel_count = 0;
    }
}

static void reach(play *all, packets *of, int32_t index) {
    packet *one = &of->packets[index];
    flow *over = &of->flows[one->flow];
    link *at = &of->links[over->way[one->behind]];
    if (one->bytes > room_in(all, at)) {
        all->result.lost_packets++;
        free_packet(of, index);
        return;
    }
    double latency = over->latency_seconds / (over->stages - 1), begin = pass(all, of, at, one, latency);
    if (one->behind < over->stages) {
        schedule_event(all, of, begin + latency, index, PACKETS_REACH);
    } else {
        arrive(all, over, one);
        schedule_event(all, of, one->passed_seconds + over->latency_seconds, index, PACKETS_ACKNOWLEDGED);
    }
}

/* --- Senders ------------------------------------------------------------------------------------------------------ */

static void halve_window(flow *over) {
    over->threshold = play_later((double)(over->next - over->oldest) / 2, 2);
    over->window = over->threshold;
    over->recovered = over->next;
}

static void note_lost(flow *over, uint64_t number) {
    segment *one = segment_at(over, number);
    if (one->known == SENT || one->known == SENT_AGAIN) {
        one->known = LOST;
        over->lost++;
        over->under_way--;
        over->repeat = number < over->repeat ? number : over->repeat;
    }
}

/* Packets that were sent once, and before three acknowledged ones, are lost. */
static void judge(flow *over, uint64_t acknowledged) {
    uint64_t moving = acknowledged + 1;
    for (int i = 0; i < 3; i++) {
        if (moving > over->latest[i]) {
            uint64_t later = moving;
            moving = over->latest[i];
            over->latest[i] = later;
        }
    }
    size_t lost = over->lost;
    over->judged = over->judged < over->oldest ? over->oldest : over->judged;
    for (; over->judged + 1 < over->latest[2]; over->judged++) {
        note_lost(over, over->judged);
    }
    if (over->lost > lost && over->oldest >= over->recovered) {
        halve_window(over);
    }
}

static void be_acknowledged(play *all, packets *of, int32_t index) {
    packet one = of->packets[index];
    flow *over = &of->flows[one.flow];
    free_packet(of, index);
    segment *known = one.number < over->oldest ? NULL : segment_at(over, one.number);
    if (known == NULL || known->known == ACKNOWLEDGED) {
        return;
    }
    *(known->known == LOST ? &over->lost : &over->under_way) -= 1;
    known->known = ACKNOWLEDGED;
    if (!one.is_repeated) {
        over->round_trip_seconds = all->now - one.sent_seconds;
    }
    if (over->oldest >= over->recovered) {
        over->window += over->window < over->threshold ? 1 : 1 / over->window;
    }
    if (one.number == over->oldest) {
        while (over->oldest < over->next && segment_at(over, over->oldest)->known == ACKNOWLEDGED) {
            over->oldest++;
        }
        over->repeat = over->repeat < over->oldest ? over->oldest : over->repeat;
        over->time_out_factor = 1;
        set_timer(all, of, one.flow, all->now + time_out_of(all, over));
    }
    judge(over, one.number);
    send_what_may_go(all, of, one.flow);
}

static void time_out(play *all, packets *of, int32_t index) {
    flow *over = &of->flows[index];
    if (over->timer_seconds != all->now) {
        return;
    }
    over->timer_seconds = INFINITY;
    if (over->oldest == over->next) {
        return;
    }
    if (over->deadline > all->now) {
        set_timer(all, of, index, over->deadline);
        return;
    }
    all->result.time_outs++;
    halve_window(over);
    over->window = 1;
    over->recovered = over->oldest;
    for (uint64_t number = over->oldest; number < over->next; number++) {
        note_lost(over, number);
    }
    over->judged = over->next;
    over->time_out_factor *= 2;
    set_timer(all, of, index, all->now + time_out_of(all, over));
    send_what_may_go(all, of, index);
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

static int32_t flow_for(play *all, packets *of, const message *one) {
    int32_t *known = &of->flow_of[one->connection];
    if (*known == NONE) {
        of->flows = play_grown(all, of->flows, of->flow_count, &of->flow_room, sizeof *of->flows);
        flow *made = &of->flows[of->flow_count];
        *made = (flow){.window = all->network->initial_window_packets,
                       .threshold = INFINITY,
                       .time_out_factor = 1,
                       .timer_seconds = INFINITY,
                       .next_in_line = NONE};
        made->stages = of->way_of(all, one, made->way, &made->latency_seconds);
        made->round_trip_seconds = 2 * made->latency_seconds;
        *known = (int32_t)of->flow_count++;
    }
    return *known;
}

static void start(play *all, packets *of, int32_t index) {
    const message *one = &all->messages[index];
    int32_t number = flow_for(all, of, one);
    flow *over = &of->flows[number];
    if (over->parcel_count == over->parcel_room && 2 * over->arriving > over->parcel_room) {
        over->parcel_count -= over->arriving;
        over->sending -= over->arriving;
        memmove(over->parcels, over->parcels + over->arriving, over->parcel_count * sizeof *over->parcels);
        over->arriving = 0;
    }
    over->parcels = play_grown(all, over->parcels, over->parcel_count, &over->parcel_room, sizeof *over->parcels);
    over->parcels[over->parcel_count++] = (parcel){.bytes = all->network->load_bytes[one->size], .message = index};
    send_what_may_go(all, of, number);
}

void play_packets_start(play *all, packets *of, int32_t index, double seconds) {
    if (seconds > all->now) {
        schedule_event(all, of, seconds, index, PACKETS_START);
    } else {
        start(all, of, index);
    }
}

void play_packets_handle(play *all, packets *of, event happened) {
    switch (happened.stage) {
    case PACKETS_START:
        start(all, of, happened.message);
        break;
    case PACKETS_PORT_FREE:
        of->links[happened.message].is_sending = 0;
        use_port(all, of, happened.message);
        break;
    case PACKETS_REACH:
        reach(all, of, happened.message);
        break;
    case PACKETS_ACKNOWLEDGED:
        be_acknowledged(all, of, happened.message);
        break;
    default:
        time_out(all, of, happened.message);
    }
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

packets *play_packets_make(play *all, size_t links, events *to, packets_way *way_of) {
    const schedule_network *network = all->network;
    int is_whole = network->packet_bytes >= 1 && network->initial_window_packets >= 1;
    if (!is_whole || network->buffer_bytes < network->packet_bytes || !(network->retransmission_seconds > 0)) {
        play_fail(all, "a buffer of %g bytes, packets of %g, a window of %g and a time-out of %g s let nothing pass",
                  network->buffer_bytes, network->packet_bytes, network->initial_window_packets,
                  network->retransmission_seconds);
    }
    packets *made = play_checked(all, calloc(1, sizeof *made));
    made->events = to;
    made->way_of = way_of;
    made->free_packet = NONE;
    made->links = calloc(links + 1, sizeof *made->links);
    made->flow_of = malloc((all->connection_count + 1) * sizeof *made->flow_of);
    if (made->links == NULL || made->flow_of == NULL) {
        play_packets_free(made);
        play_fail(all, "out of memory");
    }
    memset(made->flow_of, NONE, all->connection_count * sizeof *made->flow_of);
    return made;
}

void play_packets_set_link(packets *of, size_t number, double rate, double burst_bytes, int32_t opposite) {
    double burst_seconds = burst_bytes > 0 ? burst_bytes / rate : 0;
    of->links[number] = (link){.rate = rate,
                               .burst_seconds = burst_seconds,
                               .free_seconds = -burst_seconds,
                               .opposite = opposite,
                               .first_in_line = NONE,
                               .last_in_line = NONE};
}

void play_packets_free(packets *of) {
    if (of == NULL) {
        return;
    }
    for (size_t i = 0; i < of->flow_count; i++) {
        free(of->flows[i].segments);
        free(of->flows[i].parcels);
    }
    free(of->links);
    free(of->flow_of);
    free(of->flows);
    free(of->packets);
    free(of);
}
