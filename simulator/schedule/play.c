/* Playing a schedule: which of the engine's parts does it, and what the times of a period mean for the whole. */
#include "play.h"
#include "models.h"
#include "symmetry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The times of the whole under several sets of parameters from those of the processes that were played. `rows` has a
 * row of all sets for each process, and room for one more. */
static void set_results(schedule_result *results, double *ends, double *rows, size_t sets, int played, int procs,
                        int root) {
    double *latest = rows + (size_t)played * sets;
    memcpy(latest, rows, sets * sizeof *latest);
    for (int rank = 1; rank < played; rank++) {
        const double *row = rows + (size_t)rank * sets;
        for (size_t set = 0; set < sets; set++) {
            latest[set] = play_later(row[set], latest[set]);
        }
    }
    for (size_t set = 0; set < sets; set++) {
        const double *own = rows + set;
        results[set] = (schedule_result){.seconds = latest[set], .root_seconds = own[(size_t)(root % played) * sets]};
        double *own_ends = ends == NULL ? NULL : ends + set * (size_t)procs;
        for (int rank = 0, same = 0; own_ends != NULL && rank < procs; rank++) {
            own_ends[rank] = own[(size_t)same * sets];
            same = same + 1 < played ? same + 1 : 0;
        }
    }
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
    if (trace != NULL || log != NULL || !play_models_can(played, network)) {
        return play_by_events(played, network, root, ends, INFINITY, trace, log);
    }
    schedule_play_many(played, &network, 1, root, ends, &result);
    return result;
}

schedule_result schedule_play_within(const schedule *played, const schedule_network *network, int root, double *ends,
                                     double max_seconds) {
    if (play_models_can(played, network) && !played->is_begin) {
        return schedule_play(played, network, root, ends, NULL, NULL);
    }
    return play_by_events(played, network, root, ends, max_seconds, NULL, NULL);
}

void schedule_play_many(const schedule *played, const schedule_network *const *networks, size_t count, int root,
                        double *ends, schedule_result *results) {
    size_t procs = (size_t)played->procs;
    for (size_t first = 0, sets; first < count; first += sets) {
        const schedule_network *const *some = networks + first;
        sets = play_models_can(played, *some) ? play_models_together(played, some, count - first) : 1;
        int period = play_period(played, *some, NULL);
        double *rows = play_models_can(played, *some) ? malloc(((size_t)period + 1) * sets * sizeof *rows) : NULL;
        double *own_ends = ends == NULL ? NULL : ends + first * procs;
        if (rows != NULL && play_by_models(played, some, sets, period, rows)) {
            set_results(results + first, own_ends, rows, sets, period, played->procs, root);
        } else {
            for (size_t set = 0; set < sets; set++) {
                double *here = own_ends == NULL ? NULL : own_ends + set * procs;
                results[first + set] = play_by_events(played, some[set], root, here, INFINITY, NULL, NULL);
            }
        }
        free(rows);
    }
}

/* The time in which a port passes so many bytes, of which a token bucket lets the first ones through at once. */
static double port_seconds(const schedule_network *network, const double *rate, int node_class, double bytes) {
    return rate == NULL ? 0 : (bytes - network->burst_bytes[node_class]) / rate[node_class];
}

double schedule_own_seconds(const schedule *played, const schedule_network *network, int rank) {
    const schedule_program *program = &played->programs[played->program_of[rank]];
    const int32_t *node_of = network->node_of;
    int node_class = network->class_of[node_of[rank]];
    size_t row = (size_t)node_class * played->size_count;
    double seconds = 0, sent = 0, received = 0;
    for (size_t i = 0; i < program->length; i++) {
        schedule_kind kind = schedule_kind_of(program->words[i]);
        uint32_t size = schedule_size_of(program->words[i]);
        if (schedule_is_local(kind)) {
            seconds += network->local_seconds[kind - SCHEDULE_REDUCE][size];
        }
        if (!schedule_is_message(kind)) {
            continue;
        }
        int is_within = node_of[schedule_peer(played, rank, schedule_peer_of(program->words[i]))] == node_of[rank];
        int is_free = network->without_local_overheads && is_within;
        double load = network->out_rate == NULL || is_within ? 0 : network->load_bytes[size];
        if (schedule_is_receive(kind)) {
            /* Receives of synchronous messages may be free then. */
            is_free = is_free || network->protocol[size] == SCHEDULE_DEFERRED;
            seconds += is_free ? 0 : network->receive_seconds[row + size];
            received += load;
        } else {
            const double *overhead = kind == SCHEDULE_SEND ? network->send_seconds : network->start_seconds;
            seconds += is_free ? 0 : overhead[row + size];
            sent += load;
        }
    }
    double ports = play_later(port_seconds(network, network->out_rate, node_class, sent),
                              port_seconds(network, network->in_rate, node_class, received));
    return play_later(seconds, ports);
}

void schedule_trace_free(schedule_trace *trace) {
    free(trace->spans);
    *trace = (schedule_trace){.last = NONE};
}
