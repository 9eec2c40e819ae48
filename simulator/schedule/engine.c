/* Processes and the matching of their messages. A process goes on, on a clock of its own, until it waits for a request
 * whose time is not known yet.
 *
 * Messages from one process to another are matched in order. Under point-to-point models the times of a message follow
 * from the times at which it was sent and its receive was posted:
 *
 *     leaves   when it is sent; after its handshake if it waits for its receiver; after the gap of the message before
 *     arrives  after latency and transfer, and a gap after the message that the process received before
 *
 * so that no event has to wait for an event of another process; models.c plays these without a trace. Over ports,
 * ports.c computes the times.
 *
 * A process with several strands takes their requests in the order in which they are complete, however late its clock
 * is, and goes on with a strand when it has taken all that this one waits for. It takes a request only when time has
 * come so far that no other one can be complete before: over ports in an event, under models when no process can do
 * more before that time. */
#include "one_way.h"
#include "play.h"
#include "symmetry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- Memory of messages ------------------------------------------------------------------------------------------- */

static void make_room_for_spans(play *all, size_t count) {
    all->message_spans =
        play_grown(all, all->message_spans, count, &all->message_spans_room, sizeof *all->message_spans);
}

static message_spans *spans_of(const play *all, int32_t index) {
    return &all->message_spans[all->trace == NULL ? 0 : index];
}

static int32_t new_message(play *all) {
    int32_t index = all->free_message;
    if (index != NONE) {
        all->free_message = all->messages[index].next;
    } else {
        all->messages =
            play_grown_lines(all, all->messages, all->message_count, &all->message_room, sizeof *all->messages);
        if (all->ports != NULL) {
            play_ports_make_room(all, all->message_count);
        }
        if (all->trace != NULL) {
            make_room_for_spans(all, all->message_count);
        }
        index = (int32_t)all->message_count++;
    }
    memset(&all->messages[index], 0, sizeof all->messages[index]);
    all->messages[index].arrival_seconds = INFINITY;
    all->messages[index].next = NONE;
    return index;
}

static void free_message(play *all, int32_t index) {
    all->messages[index].next = all->free_message;
    all->free_message = index;
}

/* --- Spans -------------------------------------------------------------------------------------------------------- */

/* Notes what a process spent its time on. Returns the span's number, or `before` if it takes no time. */
static int32_t note(play *all, schedule_spent spent, int rank, int peer, uint32_t size, double begin, double end,
                    int32_t before) {
    schedule_trace *trace = all->trace;
    if (trace == NULL || !(end > begin)) {
        return before;
    }
    trace->spans = play_grown(all, trace->spans, trace->count, &trace->room, sizeof *trace->spans);
    trace->spans[trace->count] =
        (schedule_span){begin, end, before, rank, peer, size, (uint32_t)spent, 0, SCHEDULE_PORT};
    return (int32_t)trace->count++;
}

/* The same for a message. */
static int32_t note_message(play *all, schedule_spent spent, int32_t index, double end, int32_t before) {
    const message *one = &all->messages[index];
    int32_t span = note(all, spent, one->source, one->destination, one->size, one->start_seconds, end, before);
    if (span != before) {
        all->trace->spans[span].is_local = one->is_local;
        all->trace->spans[span].waits_for = (uint16_t)play_ports_waited_for(all, index);
    }
    return span;
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

/* The number of the connection to a process by that way, NONE if nothing reaches it so. */
static int32_t connection_to(const play *all, int destination, uint32_t way) {
    const process *to = &all->processes[destination];
    const schedule_source *found = schedule_find_source(to->sources, way);
    return found->source_and_one == 0 ? NONE : to->first_connection + (int32_t)found->number;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

static int is_of_strand(const process *of, uint32_t slot) { return slot > of->mask + 1; }

/* The process takes what is complete first, not before all is known that is complete until then. */
static void plan_fork(play *all, int rank) {
    strands *of = all->processes[rank].strands;
    of->next_seconds = play_later(of->complete[of->first].seconds, all->now);
    if (all->ports != NULL) {
        play_ports_start_fork(all, rank, of->next_seconds);
    } else if (!play_events_add(&all->forks_go_on, (event){of->next_seconds, rank, 0})) {
        play_fail(all, "out of memory");
    }
}

static int is_before(moment one, moment other) {
    return one.seconds < other.seconds || (one.seconds == other.seconds && one.number < other.number);
}

/* A request of a strand that waits for it is complete at a known time. */
static void add_complete(play *all, int rank, moment added) {
    strands *of = all->processes[rank].strands;
    if (of->end == of->room) {
        memmove(of->complete, of->complete + of->first, (of->end - of->first) * sizeof *of->complete);
        of->end -= of->first;
        of->first = 0;
    }
    uint32_t place = of->end++;
    for (; place > of->first && is_before(added, of->complete[place - 1]); place--) {
        of->complete[place] = of->complete[place - 1];
    }
    of->complete[place] = added;
    if (place == of->first) {
        plan_fork(all, rank);
    }
}

static void complete(play *all, int rank, uint32_t slot, double seconds, int32_t after) {
    process *of = &all->processes[rank];
    request *one = &of->requests[slot];
    one->seconds = seconds;
    one->after = after;
    if (one->is_awaited) {
        one->is_awaited = 0;
        if (is_of_strand(of, slot)) {
            add_complete(all, rank, (moment){seconds, slot});
        } else if (--of->unknown == 0) {
            all->ready[all->ready_count++] = rank;
        }
    }
}

static void message_left(play *all, int32_t index, double seconds) {
    const message *one = &all->messages[index];
    if (one->protocol == SCHEDULE_RENDEZVOUS) {
        int32_t after = note_message(all, SCHEDULE_SPENT_LEAVING, index, seconds, spans_of(all, index)->started);
        complete(all, one->source, one->send_slot, seconds, after);
    }
}

/* When a message is there and its receive posted, and after which span. */
static double received_seconds(const message *one) { return play_later(one->arrival_seconds, one->receive_seconds); }
static int32_t received_after(const play *all, int32_t index) {
    const message *one = &all->messages[index];
    const message_spans *spans = spans_of(all, index);
    return one->arrival_seconds >= one->receive_seconds ? spans->arrived : spans->posted;
}

static void answer(play *all, int32_t index, double queued_seconds) {
    const message *one = &all->messages[index];
    double latency = one->is_local ? play_local_latency(all, one)
                                   : between_nodes(all, one, all->network->answer_seconds, all->network->answer_factor);
    double received = received_seconds(one), answered = received + queued_seconds + latency;
    int32_t after = note(all, SCHEDULE_SPENT_ANSWERING, one->destination, one->source, one->size, received, answered,
                         received_after(all, index));
    complete(all, one->source, one->send_slot, answered, after);
    free_message(all, index);
}

/* The receive completes when the message is there and the receive is posted; an answer then sets out. */
static void finish_if_done(play *all, int32_t index) {
    message *one = &all->messages[index];
    if (one->is_posted && one->arrival_seconds < INFINITY) {
        play_compare(all, COMPARED_RECEIVE, (size_t)one->connection, one->size, one->arrival_seconds,
                     one->receive_seconds);
        double seconds = received_seconds(one);
        request *received = &all->processes[one->destination].requests[one->receive_slot];
        received->is_free =
            play_is_no_message(one->protocol) || (one->is_local && all->network->without_local_overheads) ||
            (one->protocol == SCHEDULE_RENDEZVOUS && all->network->protocol[one->size] == SCHEDULE_DEFERRED);
        complete(all, one->destination, one->receive_slot, seconds, received_after(all, index));
        if (one->protocol != SCHEDULE_CONFIRMED) {
            free_message(all, index);
        } else if (all->ports == NULL) {
            answer(all, index, 0);
        } else {
            play_ports_start_answer(all, index, seconds);
        }
    }
}

static schedule_spent spent_on_way(const message *one) {
    switch (one->protocol) {
    case SCHEDULE_FLAG:
        return SCHEDULE_SPENT_SEEING;
    case SCHEDULE_OWN_COPY:
        return SCHEDULE_SPENT_MOVING;
    default:
        return SCHEDULE_SPENT_ON_WAY;
    }
}

static void message_arrived(play *all, int32_t index, double seconds) {
    message *one = &all->messages[index];
    one->arrival_seconds = seconds;
    message_spans *spans = spans_of(all, index);
    spans->arrived = note_message(all, spent_on_way(one), index, seconds, spans->started);
    finish_if_done(all, index);
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

static void start_by_model(play *all, int32_t index, double seconds) {
    const schedule_network *network = all->network;
    message *one = &all->messages[index];
    double arrival;
    if (one->is_local) {
        double *free_seconds = &all->local_free_seconds[one->connection];
        play_compare(all, COMPARED_PATH, (size_t)one->connection, one->size, *free_seconds, seconds);
        *free_seconds = play_later(seconds, *free_seconds) + play_local_transfer(all, one);
        arrival = *free_seconds + play_local_latency(all, one);
    } else {
        size_t at = pair_index(all, one);
        process *from = &all->processes[one->source];
        double leaves = seconds;
        play_compare(all, COMPARED_PORT, (size_t)one->source, (uint32_t)one->destination, from->port_free_seconds,
                     seconds);
        if (from->port_free_seconds > seconds) {
            leaves = one->start_seconds = from->port_free_seconds;
            spans_of(all, index)->started = from->port_after;
        }
        from->port_free_seconds = leaves + network->gap_seconds[at];
        from->port_after = note(all, SCHEDULE_SPENT_IN_GAP, one->source, one->destination, one->size, leaves,
                                from->port_free_seconds, spans_of(all, index)->started);
        arrival = leaves + between_nodes_latency(all, one) + network->transfer_seconds[at];
    }
    message_left(all, index, arrival);
    message_arrived(all, index, arrival);
}

/* Starts a message as soon as its protocol allows. */
static void start_if_possible(play *all, int32_t index) {
    message *one = &all->messages[index];
    int waits = play_waits_for_receive(one->protocol);
    if (!one->is_sent || (waits && !one->is_posted)) {
        return;
    }
    double seconds = one->send_seconds;
    message_spans *spans = spans_of(all, index);
    spans->started = spans->sent;
    if (waits) {
        play_compare(all, COMPARED_SEND, (size_t)one->connection, one->size, seconds, one->receive_seconds);
    }
    if (waits && one->receive_seconds > seconds) {
        seconds = one->receive_seconds;
        spans->started = spans->posted;
    }
    one->start_seconds = seconds;
    /* The latency within a node includes the handshake. */
    if (waits && !one->is_local) {
        seconds += between_nodes(all, one, all->network->handshake_seconds, all->network->handshake_factor);
    }
    if (all->ports == NULL) {
        start_by_model(all, index, seconds);
    } else {
        play_ports_start(all, index, seconds);
    }
}

/* The two ends of a message, and by which way it reaches the receiver: where the sender lies. */
typedef struct {
    int source, destination;
    uint32_t way;
    int is_local;
} message_ends;

/* Between the switches of a process and of one that lies so far behind it, which another one may stand for. */
static int32_t route_between(const play *all, message_ends ends) {
    const schedule_network *network = all->network;
    int destination = schedule_peer(all->played, ends.source, schedule_back(all->played, ends.way));
    int32_t from = network->switch_of[network->node_of[ends.source]];
    return from * network->switches + network->switch_of[network->node_of[destination]];
}

/* The first message of the connection that lacks this side, or a new one at its end. */
static int32_t match(play *all, message_ends ends, uint32_t size, int is_send) {
    int source = ends.source, destination = ends.destination;
    int32_t number = connection_to(all, destination, ends.way);
    if (number == NONE) {
        play_fail(all, "a send of process %d has no counterpart in process %d", source, destination);
    }
    connection *over = &all->connections[number];
    if (over->route == NONE && all->network->switches > 0 && !ends.is_local) {
        over->route = route_between(all, ends);
    }
    int32_t index = over->first;
    if (index != NONE && (is_send ? !all->messages[index].is_sent : !all->messages[index].is_posted)) {
        over->first = all->messages[index].next;
        if (all->messages[index].size != size) {
            unsigned long long sent = all->played->sizes[is_send ? size : all->messages[index].size];
            unsigned long long received = all->played->sizes[is_send ? all->messages[index].size : size];
            play_fail(all, "process %d sends %llu bytes, of which process %d receives %llu", source, sent, destination,
                      received);
        }
        all->messages[index].next = NONE;
        return index;
    }
    index = new_message(all);
    message *one = &all->messages[index];
    one->source = source;
    one->destination = destination;
    one->size = size;
    one->connection = number;
    one->is_local = (uint8_t)ends.is_local;
    if (over->first == NONE) {
        over->first = index;
    } else {
        all->messages[over->last].next = index;
    }
    over->last = index;
    return index;
}

/* `slot` is completed when the buffer may be used again: at once, unless the protocol is rendezvous. */
static void post_send(play *all, message_ends ends, uint32_t size, uint32_t slot, double seconds,
                      schedule_protocol protocol) {
    int source = ends.source;
    int32_t index = match(all, ends, size, 1);
    message *one = &all->messages[index];
    one->is_sent = 1;
    one->protocol = (uint8_t)protocol;
    one->send_slot = slot;
    one->send_seconds = seconds;
    spans_of(all, index)->sent = all->processes[source].after;
    if (protocol == SCHEDULE_EAGER || protocol == SCHEDULE_DEFERRED) {
        complete(all, source, slot, COMPLETE_AT_ONCE, NONE);
    }
    start_if_possible(all, index);
}

static void post_receive(play *all, message_ends ends, uint32_t size, uint32_t slot, double seconds) {
    int destination = ends.destination;
    int32_t index = match(all, ends, size, 0);
    message *one = &all->messages[index];
    one->is_posted = 1;
    one->receive_slot = slot;
    one->receive_seconds = seconds;
    spans_of(all, index)->posted = all->processes[destination].after;
    if (one->is_sent && play_waits_for_receive(one->protocol)) {
        start_if_possible(all, index);
    } else {
        finish_if_done(all, index);
    }
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

/* The process's own time. */
static void spend(play *all, int rank, schedule_spent on, int peer, uint32_t size, double seconds) {
    process *now = &all->processes[rank];
    double begin = now->clock;
    now->clock += seconds;
    now->after = note(all, on, rank, peer, size, begin, now->clock, now->after);
}

/* A one-sided operation takes the processor as long as the start of a send. */
static void operate(play *all, int rank, int peer, uint32_t size) {
    spend(all, rank, SCHEDULE_SPENT_SENDING, peer, size, all->network->start_seconds[class_index(all, rank, size)]);
}

/* A counter of a process grows, which another one sees a little later. Nobody need look at it. */
static void tell(play *all, int rank, schedule_word word) {
    process *now = &all->processes[rank];
    uint32_t operation = schedule_size_of(word) >> SCHEDULE_COUNTER_BITS;
    int peer = schedule_peer(all->played, rank, schedule_peer_of(word)) % all->procs;
    message_ends ends = {rank, peer, schedule_way_to(all->played, word), 1};
    if (operation > 0) {
        operate(all, rank, peer, operation - 1);
    }
    if (connection_to(all, peer, ends.way) == NONE) {
        return;
    }
    int32_t index = match(all, ends, 0, 1);
    message *one = &all->messages[index];
    one->is_sent = 1;
    one->protocol = SCHEDULE_FLAG;
    one->send_seconds = one->start_seconds = now->clock;
    spans_of(all, index)->started = now->after;
    message_arrived(all, index, now->clock + all->network->flag_seconds[all->network->class_of[now->node]]);
}

/* A copy that shares the node's memory with others completes a request of the process. */
static void start_copy(play *all, int rank, schedule_word word, uint32_t slot) {
    process *now = &all->processes[rank];
    now->requests[slot] = (request){.seconds = INFINITY, .size = schedule_size_of(word), .after = NONE, .is_local = 1};
    int32_t index = new_message(all);
    all->messages[index] = (message){.source = rank,
                                     .destination = rank,
                                     .size = schedule_size_of(word),
                                     .connection = connection_to(all, rank, SCHEDULE_OWN_WAY),
                                     .receive_slot = slot,
                                     .start_seconds = now->clock,
                                     .arrival_seconds = INFINITY,
                                     .next = NONE,
                                     .is_sent = 1,
                                     .is_posted = 1,
                                     .is_local = 1,
                                     .protocol = SCHEDULE_OWN_COPY};
    spans_of(all, index)->started = now->after;
    play_ports_start(all, index, now->clock);
}

/* The process takes what has arrived, the earliest first; under models one message arrives after the other. */
static void take(play *all, int rank, const request *one) {
    process *now = &all->processes[rank];
    double seconds = one->seconds;
    int32_t after = one->after;
    if (one->is_receive && !one->is_local && all->ports == NULL) {
        double free = now->receive_free_seconds + all->network->receive_gap_seconds[class_index(all, rank, one->size)];
        play_compare(all, COMPARED_INTAKE, (size_t)rank, one->size, free, seconds);
        if (free > seconds) {
            after = note(all, SCHEDULE_SPENT_TAKING_IN, rank, rank, one->size, now->receive_free_seconds, free,
                         now->receive_after);
            seconds = free;
        }
        now->receive_free_seconds = seconds;
        now->receive_after = after;
    }
    play_compare(all, COMPARED_CLOCK, (size_t)rank, one->size, now->clock, seconds);
    if (seconds > now->clock) {
        now->clock = seconds;
        now->after = after;
    }
    if (one->is_receive && !one->is_free) {
        spend(all, rank, SCHEDULE_SPENT_RECEIVING, rank, one->size,
              all->network->receive_seconds[class_index(all, rank, one->size)]);
    }
}

/* Takes `count` complete requests from the one with number `first` on. */
static void take_all(play *all, int rank, uint64_t first, uint32_t count) {
    process *now = &all->processes[rank];
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = (uint32_t)(first + i) & now->mask;
        all->sorted[taken] = (moment){now->requests[slot].seconds, slot};
        taken += now->requests[slot].seconds != COMPLETE_AT_ONCE;
    }
    const moment *sorted = taken > 1 ? play_sort(all->sorted, all->sorted + taken, taken) : all->sorted;
    for (uint32_t i = 0; i < taken; i++) {
        const request *one = &now->requests[sorted[i].number];
        if (i > 0) {
            play_compare(all, COMPARED_ORDER, (size_t)rank, one->size, sorted[i - 1].seconds, sorted[i].seconds);
        }
        take(all, rank, one);
    }
}

/* Posts a send or receive, or looks at a counter, which completes the request. */
static void post(play *all, int rank, schedule_word word, uint32_t slot) {
    const schedule_network *network = all->network;
    process *now = &all->processes[rank];
    schedule_kind kind = schedule_kind_of(word);
    uint32_t size = schedule_size_of(word), ahead = schedule_peer_of(word);
    int peer = schedule_peer(all->played, rank, ahead), is_within = network->node_of[peer] == now->node;
    peer = all->procs < all->played->procs ? peer % all->procs : peer;
    int is_receive = schedule_is_receive(kind);
    now->requests[slot] =
        (request){.seconds = INFINITY, .size = size, .after = NONE, .is_receive = is_receive, .is_local = is_within};
    if (kind == SCHEDULE_AWAIT) {
        now->requests[slot].size = 0;
        post_receive(all, (message_ends){peer, rank, schedule_way_of(word), 1}, 0, slot, now->clock);
        return;
    }
    if (is_receive) {
        post_receive(all, (message_ends){peer, rank, ahead, is_within}, size, slot, now->clock);
        return;
    }
    size_t at = class_index(all, rank, size);
    double overhead = (kind == SCHEDULE_SEND ? network->send_seconds : network->start_seconds)[at];
    spend(all, rank, SCHEDULE_SPENT_SENDING, peer, size, is_within && network->without_local_overheads ? 0 : overhead);
    message_ends ends = {rank, peer, schedule_back(all->played, ahead), is_within};
    post_send(all, ends, size, slot, now->clock, play_protocol_of(kind, network->protocol[size]));
}

static void await(process *of, request *one) {
    if (one->seconds == INFINITY) {
        one->is_awaited = 1;
        of->unknown++;
    }
}

/* Local work. Returns 0 if the process has to wait for its end. */
static int work(play *all, int rank, schedule_word word) {
    process *now = &all->processes[rank];
    int which = (int)schedule_kind_of(word) - SCHEDULE_REDUCE;
    uint32_t size = schedule_size_of(word);
    if (schedule_kind_of(word) == SCHEDULE_MOVE && schedule_peer_of(word) > 0) {
        operate(all, rank, rank, size);
    }
    if (schedule_kind_of(word) == SCHEDULE_MOVE && all->ports != NULL && all->network->memory_rate > 0) {
        uint32_t slot = now->mask + 1;
        start_copy(all, rank, word, slot);
        await(now, &now->requests[slot]);
        return now->unknown == 0;
    }
    spend(all, rank, SCHEDULE_SPENT_REDUCING + which, rank, size, all->network->local_seconds[which][size]);
    return 1;
}

/* The end of local work for which the process has waited. */
static void end_work(play *all, int rank) {
    const process *now = &all->processes[rank];
    take(all, rank, &now->requests[now->mask + 1]);
}

/* --- Strands ------------------------------------------------------------------------------------------------------ */

/* A strand waits for what it has started. */
static void open_requests(play *all, int rank, strand *of) {
    process *now = &all->processes[rank];
    for (uint32_t slot = of->first_slot; slot < of->first_slot + of->made; slot++) {
        request *one = &now->requests[slot];
        one->is_awaited = one->seconds == INFINITY;
        of->open += one->seconds != COMPLETE_AT_ONCE;
        if (!one->is_awaited && one->seconds != COMPLETE_AT_ONCE) {
            add_complete(all, rank, (moment){one->seconds, slot});
        }
    }
    of->made = 0;
}

/* Goes on with a strand to its next wait or its end. Returns 0 if it has to be called again: the process is at work. */
static int go_on_to_wait(play *all, int rank, strand *of) {
    const schedule_word *words = all->processes[rank].program->words;
    while (of->at < of->end) {
        schedule_word word = words[of->at++];
        if (schedule_kind_of(word) == SCHEDULE_WAIT) {
            open_requests(all, rank, of);
            return 1;
        }
        if (schedule_is_local(schedule_kind_of(word))) {
            if (!work(all, rank, word)) {
                return 0;
            }
        } else if (schedule_kind_of(word) == SCHEDULE_TELL) {
            tell(all, rank, word);
        } else {
            post(all, rank, word, of->first_slot + of->made++);
        }
    }
    return 1;
}

/* Goes on with a strand, whose wait is over, until it has to wait or is over. Returns the same. */
static int go_on_with(play *all, int rank, strand *of) {
    while (of->open == 0 && of->at < of->end) {
        if (!go_on_to_wait(all, rank, of)) {
            return 0;
        }
    }
    all->processes[rank].strands->left -= of->open == 0;
    return 1;
}

/* The strands of a fork begin: all start what they do first, then those go on that need not wait. Returns 1 if all are
 * over. */
static int begin_strands(play *all, int rank) {
    strands *of = all->processes[rank].strands;
    while (of->begun < 2 * of->count) {
        strand *one = &of->list[of->begun % of->count];
        int goes_on = of->begun < of->count ? go_on_to_wait(all, rank, one) : go_on_with(all, rank, one);
        of->is_working = !goes_on;
        if (of->is_working) {
            return 0;
        }
        of->begun++;
    }
    return of->left == 0;
}

/* The process has come to a fork. */
static int begin_fork(play *all, int rank, uint32_t count) {
    const process *now = &all->processes[rank];
    strands *of = now->strands;
    size_t at = now->at + 1;
    uint32_t slot = now->mask + 2;
    of->count = of->left = count;
    of->begun = 0;
    of->latest_seconds = 0;
    for (uint32_t i = 0; i < count; i++) {
        schedule_word head = now->program->words[at++];
        of->list[i] = (strand){.at = at, .end = at + schedule_size_of(head), .first_slot = slot};
        slot += schedule_peer_of(head);
        at += schedule_size_of(head);
    }
    return begin_strands(all, rank);
}

/* The process goes on with a strand, and takes what is complete meanwhile. Returns 1 if all are over. */
static int go_on_in_fork(play *all, int rank, uint32_t which) {
    strands *of = all->processes[rank].strands;
    of->current = which;
    of->is_working = !go_on_with(all, rank, &of->list[which]);
    return of->left == 0;
}

/* Work is over at which a strand was, while others waited. */
static int go_on_after_work(play *all, int rank) {
    strands *of = all->processes[rank].strands;
    end_work(all, rank);
    int are_over = of->begun < 2 * of->count ? begin_strands(all, rank) : go_on_in_fork(all, rank, of->current);
    if (!of->is_working && of->first < of->end) {
        plan_fork(all, rank);
    }
    return are_over;
}

static uint32_t strand_of(const strands *of, uint32_t slot) {
    uint32_t i = of->count - 1;
    while (slot < of->list[i].first_slot) {
        i--;
    }
    return i;
}

/* Does what a word says, or finishes it after a wait. Returns 0 if the process has to stop here. */
static int perform(play *all, int rank, schedule_word word, int is_resumed) {
    process *now = &all->processes[rank];
    schedule_kind kind = schedule_kind_of(word);
    uint32_t size = schedule_size_of(word), count = schedule_peer_of(word);
    if (schedule_is_local(kind)) {
        if (is_resumed) {
            end_work(all, rank);
            return 1;
        }
        return work(all, rank, word);
    }
    if (kind == SCHEDULE_TELL) {
        tell(all, rank, word);
        return 1;
    }
    if (kind == SCHEDULE_WAIT) {
        uint64_t first = now->made - size;
        for (uint32_t i = 0; i < count && !is_resumed; i++) {
            await(now, &now->requests[(first + i) & now->mask]);
        }
        if (now->unknown > 0) {
            return 0;
        }
        take_all(all, rank, first, count);
        return 1;
    }
    if (kind == SCHEDULE_FORK) {
        int is_working = is_resumed && now->strands->is_working;
        if ((!is_resumed && !begin_fork(all, rank, count)) || (is_working && !go_on_after_work(all, rank))) {
            return 0;
        }
        now->at += size;
        return 1;
    }
    int is_blocking = kind == SCHEDULE_SEND || kind == SCHEDULE_RECEIVE;
    uint32_t slot = is_blocking ? now->mask + 1 : (uint32_t)now->made & now->mask;
    if (!is_resumed) {
        now->made += (uint64_t)!is_blocking;
        post(all, rank, word, slot);
    }
    if (is_blocking) {
        if (!is_resumed) {
            await(now, &now->requests[slot]);
        }
        if (now->unknown > 0) {
            return 0;
        }
        if (now->requests[slot].seconds != COMPLETE_AT_ONCE) {
            take(all, rank, &now->requests[slot]);
        }
    }
    return 1;
}

/* The process does more, of which nothing is recorded. What follows is not known, unless its clock is late enough. */
static _Noreturn void end_open(play *all, const process *cut) {
    all->result.seconds = cut->clock;
    all->result.is_longer = cut->clock > all->max_seconds;
    all->result.is_open = !all->result.is_longer;
    longjmp(all->give_up, 1);
}

static void go_on(play *all, int rank, int is_resumed) {
    process *now = &all->processes[rank];
    const schedule_program *program = now->program;
    for (; now->at < program->length; now->at++, is_resumed = 0) {
        if (!perform(all, rank, program->words[now->at], is_resumed)) {
            return;
        }
    }
    if (program->is_cut) {
        end_open(all, now);
    }
    all->unfinished--;
}

static void go_on_all(play *all) {
    while (all->ready_count > 0) {
        go_on(all, all->ready[--all->ready_count], 1);
    }
}

static void fork_goes_on(play *all, int rank, double seconds) {
    process *now = &all->processes[rank];
    strands *of = now->strands;
    if (of->first == of->end || of->next_seconds != seconds || of->is_working) {
        return; /* something else was complete before this, or the process cannot take it yet */
    }
    moment next = of->complete[of->first++];
    const request *taken = &now->requests[next.number];
    uint32_t on = strand_of(of, next.number);
    play_compare(all, COMPARED_ORDER, (size_t)rank, taken->size, of->latest_seconds, next.seconds);
    of->latest_seconds = next.seconds;
    if (of->first < of->end) {
        plan_fork(all, rank);
    }
    take(all, rank, taken);
    if (--of->list[on].open == 0) {
        go_on_in_fork(all, rank, on);
    }
    if (of->left == 0) {
        go_on(all, rank, 1);
    }
}

static const play_listener processes = {.message_left = message_left,
                                        .message_arrived = message_arrived,
                                        .answer = answer,
                                        .fork = fork_goes_on,
                                        .go_on = go_on_all};

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* Room for what processes do at once. */
static void make_strands(play *all) {
    size_t forking = 0, count = 0, requests = 0;
    for (int rank = 0; rank < all->procs; rank++) {
        const schedule_program *program = all->processes[rank].program;
        forking += program->strands > 0;
        count += program->strands;
        requests += program->strand_requests;
    }
    all->strands = play_checked(all, calloc(forking + 1, sizeof *all->strands));
    all->each_strand = play_checked(all, malloc((count + 1) * sizeof *all->each_strand));
    all->complete = play_checked(all, malloc((requests + 1) * sizeof *all->complete));
    strands *next = all->strands;
    for (int rank = 0; rank < all->procs; rank++) {
        const schedule_program *program = all->processes[rank].program;
        if (program->strands > 0) {
            count -= program->strands;
            requests -= program->strand_requests;
            *next = (strands){.list = all->each_strand + count,
                              .complete = all->complete + requests,
                              .room = program->strand_requests};
            all->processes[rank].strands = next++;
        }
    }
}

static void make_processes(play *all) {
    size_t procs = (size_t)all->procs, requests = 0, max_requests = 0, connections = 0;
    all->ready = play_checked(all, malloc(procs * sizeof *all->ready));
    all->processes = play_checked(all, calloc(procs, sizeof *all->processes));
    for (size_t rank = 0; rank < procs; rank++) {
        process *one = &all->processes[rank];
        one->node = all->network->node_of[rank];
        one->row = (size_t)all->network->class_of[one->node] * all->sizes;
        one->program = &all->played->programs[all->played->program_of[rank]];
        one->sources = one->program->sources;
        while (one->mask + 1 < one->program->requests) {
            one->mask = 2 * one->mask + 1;
        }
        one->after = one->port_after = one->receive_after = NONE;
        one->first_connection = (int32_t)connections;
        connections += one->sources.count;
        requests += (size_t)one->mask + 2 + one->program->strand_requests;
        max_requests = one->mask >= max_requests ? (size_t)one->mask + 1 : max_requests;
    }
    if (connections > INT32_MAX) {
        play_fail(all, "more than 2^31 pairs of processes that exchange messages");
    }
    all->sorted = play_checked(all, malloc(2 * max_requests * sizeof *all->sorted));
    all->requests = play_checked(all, malloc(requests * sizeof *all->requests));
    all->connections = play_checked(all, malloc((connections + 1) * sizeof *all->connections));
    memset(all->connections, NONE, connections * sizeof *all->connections);
    all->local_free_seconds = play_checked(all, calloc(connections + 1, sizeof *all->local_free_seconds));
    all->connection_count = connections;
    request *next = all->requests;
    for (size_t rank = 0; rank < procs; rank++) {
        all->processes[rank].requests = next;
        next += (size_t)all->processes[rank].mask + 2 + all->processes[rank].program->strand_requests;
    }
    if (all->played->has_strands) {
        make_strands(all);
    }
}

/* Under point-to-point models only forks wait for a time to come. */
static void play_forks(play *all) {
    event next;
    while (all->forks_go_on.filled != 0) {
        if (!play_events_take(&all->forks_go_on, &next)) {
            play_fail(all, "out of memory");
        }
        all->now = next.seconds;
        fork_goes_on(all, next.message, next.seconds);
        go_on_all(all);
    }
}

static void play_together(play *all) {
    for (int rank = 0; rank < all->procs; rank++) {
        go_on(all, rank, 0);
        go_on_all(all);
    }
    if (all->ports != NULL) {
        play_ports_run(all);
    } else {
        play_forks(all);
    }
}

/* Plays one node after the other. */
static void play_nodes(play *all) {
    const one_way *order = all->one_way;
    play_ports_use_inboxes(all);
    for (int i = 0; i < all->network->nodes; i++) {
        int32_t node = order->nodes[i];
        play_ports_begin_node(all, node);
        for (int32_t place = order->first[node]; place < order->first[node + 1]; place++) {
            go_on(all, order->ranks[place], 0);
            go_on_all(all);
        }
        play_ports_run(all);
    }
}

static void run(play *all) {
    all->unfinished = all->procs;
    make_room_for_spans(all, 0);
    make_processes(all);
    if (all->network->out_rate != NULL) {
        all->ports = play_ports_make(all);
    }
    all->one_way = play_one_way_make(all);
    if (all->one_way != NULL) {
        play_nodes(all);
    } else {
        play_together(all);
    }
    if (all->unfinished > 0) {
        int rank = 0;
        while (all->processes[rank].at == all->processes[rank].program->length) {
            rank++;
        }
        play_fail(all, "%d processes wait for ever; the first is process %d, in step %zu of its program",
                  all->unfinished, rank, all->processes[rank].at);
    }
}

static void check_nothing_is_left(play *all) {
    for (size_t i = 0; i < all->connection_count; i++) {
        int32_t left = all->connections[i].first;
        int is_flag = left != NONE && all->messages[left].protocol == SCHEDULE_FLAG; /* which nobody had to see */
        if (left != NONE && !is_flag) {
            const message *one = &all->messages[left];
            play_fail(all, "a %s of process %d has no counterpart in process %d", one->is_sent ? "send" : "receive",
                      one->is_sent ? one->source : one->destination, one->is_sent ? one->destination : one->source);
        }
    }
}

static void release(play *all) {
    free(all->processes);
    free(all->requests);
    play_free_lines(all->messages);
    free(all->message_spans);
    play_free_lines(all->transits);
    free(all->connections);
    free(all->local_free_seconds);
    free(all->sorted);
    free(all->strands);
    free(all->each_strand);
    free(all->complete);
    play_events_free(&all->forks_go_on);
    free(all->ready);
    free(all->link_of);
    play_one_way_free(all->one_way);
    play_ports_free(all->ports);
}

schedule_result play_by_events(const schedule *played, const schedule_network *network, int root, double *ends,
                               double max_seconds, schedule_trace *trace, schedule_log *log) {
    play *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return (schedule_result){.failed = 1, .problem = "out of memory"};
    }
    *all = (play){.max_seconds = max_seconds,
                  .trace = trace,
                  .log = log,
                  .tell = &processes,
                  .played = played,
                  .network = network,
                  .sizes = played->size_count,
                  .free_message = NONE};
    all->procs = played->procs;
    if (trace == NULL || trace->of_period) {
        all->link_of = network->switches > 0 ? malloc((size_t)network->links * sizeof *all->link_of) : NULL;
        all->procs = play_period(played, network, all->link_of);
    }
    if (all->procs == played->procs) {
        free(all->link_of);
        all->link_of = NULL;
    }
    if (setjmp(all->give_up) == 0) {
        if (log != NULL && network->switches > 0) {
            play_fail(all, "links between switches are not compared");
        }
        run(all);
        check_nothing_is_left(all);
        if (log != NULL) {
            play_sort_comparisons(all);
        }
        for (int rank = 0; rank < played->procs; rank++) {
            const process *done = &all->processes[rank % all->procs];
            if (done->clock > all->result.seconds) {
                all->result.seconds = done->clock;
                if (trace != NULL) {
                    trace->last = done->after;
                }
            }
            if (ends != NULL) {
                ends[rank] = done->clock;
            }
        }
        all->result.root_seconds = all->processes[root % all->procs].clock;
    }
    schedule_result result = all->result;
    release(all);
    free(all);
    return result;
}
