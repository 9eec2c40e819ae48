/* Playing a schedule: which of the engine's parts does it, and what the times of a period mean for the whole. */
#include "play.h"
#include "models.h"
#include "symmetry.h"

#include <math.h>
#include <stdlib.h>

/* The times of the whole from those of the processes that were played. */
static void set_result(schedule_result *result, double *ends, const double *seconds, size_t stride, int played,
                       int procs, int root) {
    for (int rank = 0; rank < procs; rank++) {
        double end = seconds[(size_t)(rank % played) * stride];
        result->seconds = play_later(end, result->seconds);
        if (ends != NULL) {
            ends[rank] = end;
        }
    }
    result->root_seconds = seconds[(size_t)(root % played) * stride];
}

schedule_result schedule_play(const schedule *played, const schedule_network *network, int root, double *ends,
                              schedule_trace *trace, schedule_log *log) {
    schedule_result result;
    if (trace != NULL) {
        *trace = (schedule_trace){.last = NONE, .of_period = trace->of_period};
    }
    if (log != NULL) {
        *log = (schedule_log){0};
    }
    if (trace != NULL || log != NULL || !models_can_play(network)) {
        return play_by_events(played, network, root, ends, INFINITY, trace, log);
    }
    schedule_play_many(played, &network, 1, root, ends, &result);
    return result;
}

schedule_result schedule_play_within(const schedule *played, const schedule_network *network, int root, double *ends,
                                     double most_seconds) {
    if (models_can_play(network) && !played->is_begin) {
        return schedule_play(played, network, root, ends, NULL, NULL);
    }
    return play_by_events(played, network, root, ends, most_seconds, NULL, NULL);
}

void schedule_play_many(const schedule *played, const schedule_network *const *networks, size_t count, int root,
                        double *ends, schedule_result *results) {
    size_t procs = (size_t)played->procs;
    for (size_t first = 0, sets; first < count; first += sets) {
        const schedule_network *const *some = networks + first;
        sets = models_can_play(*some) ? models_together(played, some, count - first) : 1;
        int period = play_period(played, *some, NULL);
        double *rows = models_can_play(*some) ? malloc((size_t)period * sets * sizeof *rows) : NULL;
        int is_done = rows != NULL && models_play(played, some, sets, period, rows);
        for (size_t set = 0; set < sets; set++) {
            double *own_ends = ends == NULL ? NULL : ends + (first + set) * procs;
            results[first + set] = (schedule_result){0};
            if (is_done) {
                set_result(&results[first + set], own_ends, rows + set, sets, period, played->procs, root);
            } else {
                results[first + set] = play_by_events(played, some[set], root, own_ends, INFINITY, NULL, NULL);
            }
        }
        free(rows);
    }
}

double schedule_own_seconds(const schedule *played, const schedule_network *network, int rank) {
    const schedule_program *program = &played->programs[played->program_of[rank]];
    const int32_t *node_of = network->node_of;
    size_t row = (size_t)network->class_of[node_of[rank]] * played->size_count;
    double seconds = 0;
    for (size_t i = 0; i < program->length; i++) {
        schedule_kind kind = schedule_kind_of(program->words[i]);
        uint32_t size = schedule_size_of(program->words[i]);
        int peer = schedule_peer(played, rank, schedule_peer_of(program->words[i]));
        int is_free = network->without_local_overheads && node_of[peer] == node_of[rank];
        switch (kind) {
        case SCHEDULE_SEND:
            seconds += is_free ? 0 : network->send_seconds[row + size];
            break;
        case SCHEDULE_START_SEND:
        case SCHEDULE_START_SYNCHRONOUS:
            seconds += is_free ? 0 : network->start_seconds[row + size];
            break;
        case SCHEDULE_RECEIVE:
        case SCHEDULE_START_RECEIVE:
            /* Receives of synchronous messages may be free then. */
            is_free = is_free || network->protocol[size] == SCHEDULE_DEFERRED;
            seconds += is_free ? 0 : network->receive_seconds[row + size];
            break;
        case SCHEDULE_REDUCE:
            seconds += network->reduce_seconds[size];
            break;
        case SCHEDULE_COPY:
            seconds += network->copy_seconds[size];
            break;
        case SCHEDULE_WAIT:
            break;
        }
    }
    return seconds;
}

void schedule_trace_free(schedule_trace *trace) {
    free(trace->spans);
    *trace = (schedule_trace){.last = NONE};
}

void schedule_log_free(schedule_log *log) {
    free(log->items);
    *log = (schedule_log){0};
}
