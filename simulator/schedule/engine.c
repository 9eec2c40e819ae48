/* Processes. Each goes on, on a clock of its own, until it waits for a request whose time is not known yet
 * (messages.c), or for one of its strands (strands.c). */
#include "messages.h"
#include "one_way.h"
#include "strands.h"
#include "symmetry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Does what a word says, or finishes it after a wait. Returns 0 if the process has to stop here. */
static int perform(play *all, int rank, schedule_word word, int is_resumed) {
    process *now = &all->processes[rank];
    schedule_kind kind = schedule_kind_of(word);
    uint32_t size = schedule_size_of(word), count = schedule_peer_of(word);
    if (schedule_is_local(kind)) {
        if (is_resumed) {
            play_end_work(all, rank);
            return 1;
        }
        return play_work(all, rank, word);
    }
    if (kind == SCHEDULE_TELL) {
        play_tell(all, rank, word);
        return 1;
    }
    if (kind == SCHEDULE_WAIT) {
        uint64_t first = now->made - size;
        for (uint32_t i = 0; i < count && !is_resumed; i++) {
            play_await(now, &now->requests[(first + i) & now->mask]);
        }
        if (now->unknown > 0) {
            return 0;
        }
        play_take_all(all, rank, first, count);
        return 1;
    }
    if (kind == SCHEDULE_FORK) {
        int is_working = is_resumed && now->strands->is_working;
        if ((!is_resumed && !play_begin_fork(all, rank, count)) || (is_working && !play_go_on_after_work(all, rank))) {
            return 0;
        }
        now->at += size;
        return 1;
    }
    int is_blocking = kind == SCHEDULE_SEND || kind == SCHEDULE_RECEIVE;
    uint32_t slot = is_blocking ? now->mask + 1 : (uint32_t)now->made & now->mask;
    if (!is_resumed) {
        now->made += (uint64_t)!is_blocking;
        play_post(all, rank, word, slot);
    }
    if (is_blocking) {
        if (!is_resumed) {
            play_await(now, &now->requests[slot]);
        }
        if (now->unknown > 0) {
            return 0;
        }
        if (now->requests[slot].seconds != COMPLETE_AT_ONCE) {
            play_take(all, rank, &now->requests[slot]);
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
    if (schedule_is_stopped()) {
        play_fail(all, "it was stopped");
    }
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
    if (play_fork_goes_on(all, rank, seconds)) {
        go_on(all, rank, 1);
    }
}

static const play_listener processes = {.message_left = play_message_left,
                                        .message_arrived = play_message_arrived,
                                        .answer = play_answer,
                                        .fork = fork_goes_on,
                                        .go_on = go_on_all};

/* --- The whole ---------------------------------------------------------------------------------------------------- */

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
        play_make_strands(all);
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
    play_make_room_for_spans(all, 0);
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
