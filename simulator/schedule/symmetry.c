#include "symmetry.h"
#include "play.h"

#include <stdlib.h>

/* The most programs of a mirrored schedule that are compared: with more of them processes are seldom alike. */
enum { MAX_PROGRAMS = 16 };

/* Copies and memory count only where they take time. */
static int is_free(const schedule_network *network, schedule_word word) {
    schedule_kind kind = schedule_kind_of(word);
    return kind > SCHEDULE_REDUCE && !(network->local_seconds[kind - SCHEDULE_REDUCE][schedule_size_of(word)] > 0);
}

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

/* Whether two programs take the same time, which local copies that take none do not change. */
static int take_same_time(const schedule_network *network, const schedule_program *one, const schedule_program *other) {
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < one->length && is_free(network, one->words[i])) {
            i++;
        }
        while (j < other->length && is_free(network, other->words[j])) {
            j++;
        }
        if (i == one->length || j == other->length) {
            return i == one->length && j == other->length;
        }
        if (one->words[i] != other->words[j]) {
            return 0;
        }
    }
}

/* The period of a mirrored schedule: the processes of a node, if all processes do the same, on equal nodes in blocks
 * whose number of processes is a power of two. Of ranks that differ in bits above those of a node, one then stands for
 * all. Otherwise it is all processes. */
static int mirrored_period(const schedule *played, const schedule_network *network) {
    int per_node = network->nodes == 0 ? 0 : played->procs / network->nodes;
    if (network->switches > 0 || per_node * network->nodes != played->procs || (per_node & (per_node - 1)) != 0) {
        return played->procs;
    }
    for (size_t program = 1; program < played->program_count; program++) {
        if (program > MAX_PROGRAMS || !take_same_time(network, &played->programs[0], &played->programs[program])) {
            return played->procs;
        }
    }
    for (int rank = 0; rank < played->procs; rank++) {
        int is_alike = network->node_of[rank] == rank / per_node &&
                       network->class_of[rank / per_node] == network->class_of[0] &&
                       (network->sockets == 0 || network->socket_of[rank] == network->socket_of[rank % per_node]);
        if (!is_alike) {
            return played->procs;
        }
    }
    return per_node;
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
    return !play_all_are_eager(played, network);
}

/* --- Links between switches ----------------------------------------------------------------------------------------
 */

enum { UNKNOWN = -1 };

/* Whether switches repeat with the nodes: finds the switch that comes in place of each. */
static int find_next_switches(const schedule_network *network, int nodes, int32_t *next_switch) {
    for (int one = 0; one < network->switches; one++) {
        next_switch[one] = UNKNOWN;
    }
    for (int node = 0; node < network->nodes; node++) {
        int other = node + nodes < network->nodes ? node + nodes : node + nodes - network->nodes;
        int32_t *next = &next_switch[network->switch_of[node]];
        if (*next != UNKNOWN && *next != network->switch_of[other]) {
            return 0;
        }
        *next = network->switch_of[other];
    }
    for (int one = 0; one < network->switches; one++) {
        if (next_switch[one] == UNKNOWN) {
            return 0;
        }
    }
    return 1;
}

/* Whether the route that comes in place of another adds as much to it and has links of the same rates: finds the link
 * that comes in place of each. */
static int find_next_links(const schedule_network *network, size_t route, size_t other, int32_t *next_link) {
    const int64_t *first = network->route_first;
    if (network->route_seconds[route] != network->route_seconds[other] ||
        first[route + 1] - first[route] != first[other + 1] - first[other]) {
        return 0;
    }
    for (int64_t i = first[route], j = first[other]; i < first[route + 1]; i++, j++) {
        int32_t link = network->route_links[i], next = network->route_links[j];
        if (network->link_rate[link] != network->link_rate[next] ||
            (next_link[link] != UNKNOWN && next_link[link] != next)) {
            return 0;
        }
        next_link[link] = next;
    }
    return 1;
}

/* Whether no two links come in place of the same one, and the two directions of a cable in place of those of one. */
static int are_permuted(const schedule_network *network, const int32_t *next_link, int32_t *seen) {
    for (int link = 0; link < network->links; link++) {
        seen[link] = UNKNOWN;
    }
    for (int32_t link = 0; link < network->links; link++) {
        if (next_link[link] != UNKNOWN && seen[next_link[link]] != UNKNOWN) {
            return 0;
        }
        if (next_link[link] != UNKNOWN) {
            seen[next_link[link]] = link;
        }
    }
    for (int32_t link = 0; link < network->links; link++) {
        if (next_link[link] == UNKNOWN) {
            continue;
        }
        int32_t back = next_link[link ^ 1];
        if (back == UNKNOWN ? seen[next_link[link] ^ 1] != UNKNOWN : back != (next_link[link] ^ 1)) {
            return 0;
        }
    }
    return 1;
}

/* The links that come in place of one another are a cycle, for which its first one stands. False if a cycle has fewer
 * links than there are repetitions: processes that one stands for then share a link. */
static int find_cycles(const schedule_network *network, int repetitions, const int32_t *next_link, int32_t *link_of) {
    for (int32_t link = 0; link < network->links; link++) {
        link_of[link] = UNKNOWN;
    }
    for (int32_t link = 0; link < network->links; link++) {
        int length = 0;
        for (int32_t at = link; at != UNKNOWN && link_of[at] == UNKNOWN; at = next_link[at]) {
            link_of[at] = link;
            length++;
        }
        if (next_link[link] != UNKNOWN && length > 0 && length < repetitions) {
            return 0;
        }
    }
    return 1;
}

/* Whether every route passes what stands for its links once only. */
static int are_passed_once(const schedule_network *network, const int32_t *link_of, int32_t *seen) {
    for (int link = 0; link < network->links; link++) {
        seen[link] = UNKNOWN;
    }
    for (int32_t route = 0; route < network->switches * network->switches; route++) {
        for (int64_t i = network->route_first[route]; i < network->route_first[route + 1]; i++) {
            int32_t *last = &seen[link_of[network->route_links[i]]];
            if (*last == route) {
                return 0;
            }
            *last = route;
        }
    }
    return 1;
}

/* Whether switches and links repeat after so many nodes. `memory` has room for two numbers of each. */
static int links_repeat(const schedule_network *network, int nodes, int32_t *link_of, int32_t *memory) {
    int32_t *next_link = memory, *seen = memory + network->links, *next_switch = seen + network->links;
    if (!find_next_switches(network, nodes, next_switch)) {
        return 0;
    }
    for (int link = 0; link < network->links; link++) {
        next_link[link] = UNKNOWN;
    }
    size_t switches = (size_t)network->switches;
    for (size_t one = 0; one < switches; one++) {
        for (size_t other = 0; other < switches; other++) {
            size_t next = (size_t)next_switch[one] * switches + (size_t)next_switch[other];
            if (!find_next_links(network, one * switches + other, next, next_link)) {
                return 0;
            }
        }
    }
    if (!are_permuted(network, next_link, seen)) {
        return 0;
    }
    return find_cycles(network, network->nodes / nodes, next_link, link_of) && are_passed_once(network, link_of, seen);
}

/* --- The period --------------------------------------------------------------------------------------------------- */

int play_period(const schedule *played, const schedule_network *network, int32_t *link_of) {
    int has_links = network->switches > 0;
    int is_alone = (has_links && link_of == NULL) || network->buffer_bytes > 0 || depends_on_order(played, network);
    if (played->is_mirrored) {
        return is_alone ? played->procs : mirrored_period(played, network);
    }
    int most = is_alone ? 0 : played->procs / 2;
    int32_t *memory = NULL;
    if (has_links && (int)played->program_count <= most) {
        memory = malloc(2 * (size_t)(network->links + network->switches) * sizeof *memory);
        most = memory == NULL ? 0 : most;
    }
    int found = played->procs;
    for (int period = (int)played->program_count; period <= most && found == played->procs; period++) {
        if (played->procs % period == 0 && repeats_after(played, network, period)) {
            int nodes = (int)((int64_t)network->nodes * period / played->procs);
            found = !has_links || links_repeat(network, nodes, link_of, memory) ? period : found;
        }
    }
    free(memory);
    return found;
}
