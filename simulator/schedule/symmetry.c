#include "symmetry.h"
#include "play.h"

/* Whether all processes do the same as those a period before them, on nodes that are as far apart and alike, and on
 * sockets that have the same number. */
static int repeats_after(const schedule *played, const schedule_network *network, int period) {
    const int32_t *node_of = network->node_of;
    int nodes = (int)((int64_t)network->nodes * period / played->procs);
    for (int rank = 0; rank < played->procs; rank++) {
        int other = rank + period < played->procs ? rank + period : rank + period - played->procs;
        int node =
            node_of[rank] + nodes < network->nodes ? node_of[rank] + nodes : node_of[rank] + nodes - network->nodes;
        int is_alike = played->program_of[rank] == played->program_of[other] && node_of[other] == node &&
                       network->class_of[node_of[rank]] == network->class_of[node] &&
                       (network->sockets == 0 || network->socket_of[rank] == network->socket_of[other]);
        if (!is_alike || (rank < period && node_of[rank] >= nodes)) {
            return 0;
        }
    }
    return 1;
}

/* Whether the order in which equal processes are handled at one instant counts. Under point-to-point models a process
 * starts messages that wait for their receives in the order in which the engine finds that they may start; over ports
 * the first of several messages takes what is in a token bucket. */
static int depends_on_order(const schedule *played, const schedule_network *network) {
    if (network->out_rate != NULL) {
        int kind = 0;
        while (kind < network->classes && !(network->burst_bytes[kind] > 0)) {
            kind++;
        }
        return kind < network->classes;
    }
    size_t size = 0;
    while (size < played->size_count && !play_waits_for_receive(network->protocol[size])) {
        size++;
    }
    return size < played->size_count;
}

int play_period(const schedule *played, const schedule_network *network) {
    int is_alone = network->switches > 0 || network->buffer_bytes > 0 || depends_on_order(played, network);
    int most = is_alone ? 0 : played->procs / 2;
    for (int period = (int)played->program_count; period <= most; period++) {
        if (played->procs % period == 0 && repeats_after(played, network, period)) {
            return period;
        }
    }
    return played->procs;
}
