/* The matching of messages, and what a process does by a word of its program.
 *
 * Messages from one process to another are matched in order. Under point-to-point models the times of a message follow
 * from the times at which it was sent and its receive was posted:
 *
 *     leaves   when it is sent; after its handshake if it waits for its receiver; after the gap of the message before
 *     arrives  after latency and transfer, and a gap after the message that the process received before
 *
 * so that no event has to wait for an event of another process; models.c plays these without a trace. Over ports,
 * ports.c computes the times. */
#include "messages.h"

#include <math.h>
#include <string.h>

/* --- Memory of messages ------------------------------------------------------------------------------------------- */

void play_make_room_for_spans(play *all, size_t count) {
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
            play_make_room_for_spans(all, all->message_count);
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

void play_plan_fork(play *all, int rank) {
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

void play_add_complete(play *all, int rank, moment added) {
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
        play_plan_fork(all, rank);
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
            play_add_complete(all, rank, (moment){seconds, slot});
        } else if (--of->unknown == 0) {
            all->ready[all->ready_count++] = rank;
        }
    }
}

void play_message_left(play *all, int32_t index, double seconds) {
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

/* The sender learns that the receiver, or its node, has the message. */
static void answer(play *all, int32_t index, double seconds, double queued_seconds, int32_t after) {
    const message *one = &all->messages[index];
    double latency = one->is_local ? play_local_latency(all, one)
                                   : between_nodes(all, one, all->network->answer_seconds, all->network->answer_factor);
    double answered = seconds + queued_seconds + latency;
    after = note(all, SCHEDULE_SPENT_ANSWERING, one->destination, one->source, one->size, seconds, answered, after);
    complete(all, one->source, one->send_slot, answered, after);
}

void play_answer(play *all, int32_t index, double queued_seconds) {
    answer(all, index, received_seconds(&all->messages[index]), queued_seconds, received_after(all, index));
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
            play_answer(all, index, 0);
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

void play_message_arrived(play *all, int32_t index, double seconds) {
    message *one = &all->messages[index];
    one->arrival_seconds = seconds;
    message_spans *spans = spans_of(all, index);
    spans->arrived = note_message(all, spent_on_way(one), index, seconds, spans->started);
    if (one->protocol == SCHEDULE_ACKNOWLEDGED) {
        answer(all, index, seconds, 0, spans->arrived);
    }
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
    play_message_left(all, index, arrival);
    play_message_arrived(all, index, arrival);
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
    one->protocol = protocol == SCHEDULE_ACKNOWLEDGED && ends.is_local ? SCHEDULE_EAGER : (uint8_t)protocol;
    one->send_slot = slot;
    one->send_seconds = seconds;
    spans_of(all, index)->sent = all->processes[source].after;
    if (one->protocol == SCHEDULE_EAGER || one->protocol == SCHEDULE_DEFERRED) {
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

/* --- Words ------------------------------------------------------------------------------------------------------- */

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

void play_tell(play *all, int rank, schedule_word word) {
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
    play_message_arrived(all, index, now->clock + all->network->flag_seconds[all->network->class_of[now->node]]);
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

void play_take(play *all, int rank, const request *one) {
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

void play_take_all(play *all, int rank, uint64_t first, uint32_t count) {
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
        play_take(all, rank, one);
    }
}

void play_post(play *all, int rank, schedule_word word, uint32_t slot) {
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

void play_await(process *of, request *one) {
    if (one->seconds == INFINITY) {
        one->is_awaited = 1;
        of->unknown++;
    }
}

int play_work(play *all, int rank, schedule_word word) {
    process *now = &all->processes[rank];
    int which = (int)schedule_kind_of(word) - SCHEDULE_REDUCE;
    uint32_t size = schedule_size_of(word);
    if (schedule_kind_of(word) == SCHEDULE_MOVE && schedule_peer_of(word) > 0) {
        operate(all, rank, rank, size);
    }
    if (schedule_kind_of(word) == SCHEDULE_MOVE && all->ports != NULL && all->network->memory_rate > 0) {
        uint32_t slot = now->mask + 1;
        start_copy(all, rank, word, slot);
        play_await(now, &now->requests[slot]);
        return now->unknown == 0;
    }
    spend(all, rank, SCHEDULE_SPENT_REDUCING + which, rank, size, all->network->local_seconds[which][size]);
    return 1;
}

void play_end_work(play *all, int rank) {
    const process *now = &all->processes[rank];
    play_take(all, rank, &now->requests[now->mask + 1]);
}
