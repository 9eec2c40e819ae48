#include "one_way.h"

#include <stdlib.h>

/* Whether senders never learn of their receivers, and ports and links are those of one node. */
static int is_eligible(const play *all) {
    const schedule_network *network = all->network;
    if (all->ports == NULL || all->procs < all->played->procs || network->switches > 0 || network->buffer_bytes > 0 ||
        all->trace != NULL || all->log != NULL || all->played->is_begin || all->played->has_synchronous) {
        return 0;
    }
    for (int class = 0; class < network->classes; class ++) {
        if (network->burst_bytes[class] > 0) {
            return 0;
        }
    }
    int rank = 0;
    while (rank < all->procs && all->processes[rank].sources.count > 0) {
        rank++;
    }
    return rank < all->procs && play_all_are_eager(all->played, network);
}

/* The node from which a process receives messages by that entry of its table, NONE if it is its own or there is none.
 */
static int32_t sender_of(const play *all, int rank, uint32_t place) {
    const process *to = &all->processes[rank];
    uint32_t found = to->sources.places[place].source_and_one;
    if (found == 0) {
        return NONE;
    }
    int32_t node = all->processes[schedule_peer(all->played, rank, schedule_way_peer(found - 1))].node;
    return node == to->node ? NONE : node;
}

/* The edges between nodes: those from node i are in `to`, from first[i] to before first[i + 1]. */
typedef struct {
    int32_t *first, *to, *unknown; /* unknown: how many come to a node */
} edges;

static void count_edges(const play *all, edges *of) {
    for (int rank = 0; rank < all->procs; rank++) {
        for (uint32_t place = 0; place >> all->processes[rank].sources.bits == 0; place++) {
            int32_t from = sender_of(all, rank, place);
            if (from != NONE) {
                of->first[from + 1]++;
                of->unknown[all->processes[rank].node]++;
            }
        }
    }
}

/* Turns counts into the ends of consecutive ranges; those of range i are in first[i + 1]. */
static void sum_up(int32_t *first, int count) {
    for (int i = 0; i < count; i++) {
        first[i + 1] += first[i];
    }
}

/* Moves the begins of consecutive ranges to where they belong: that of range i from first[i + 1] to first[i]. */
static void shift(int32_t *first, int count, int32_t end) {
    for (int i = 0; i < count; i++) {
        first[i] = first[i + 1];
    }
    first[count] = end;
}

static void fill_edges(const play *all, edges *of) {
    int nodes = all->network->nodes;
    sum_up(of->first, nodes);
    int32_t end = of->first[nodes];
    for (int rank = all->procs - 1; rank >= 0; rank--) {
        for (uint32_t place = 0; place >> all->processes[rank].sources.bits == 0; place++) {
            int32_t from = sender_of(all, rank, place);
            if (from != NONE) {
                of->to[--of->first[from + 1]] = all->processes[rank].node;
            }
        }
    }
    shift(of->first, nodes, end);
}

/* The nodes in an order in which each follows those that send it messages, and soon the last of these. Returns how many
 * have a place in it. */
static int order_nodes(const edges *of, int nodes, int32_t *order, int32_t *stack) {
    int waiting = 0, count = 0;
    for (int node = nodes - 1; node >= 0; node--) {
        if (of->unknown[node] == 0) {
            stack[waiting++] = node;
        }
    }
    while (waiting > 0) {
        int32_t node = stack[--waiting];
        order[count++] = node;
        for (int32_t i = of->first[node]; i < of->first[node + 1]; i++) {
            if (--of->unknown[of->to[i]] == 0) {
                stack[waiting++] = of->to[i];
            }
        }
    }
    return count;
}

static void group_ranks(const play *all, one_way *made) {
    int nodes = all->network->nodes;
    for (int rank = 0; rank < all->procs; rank++) {
        made->first[all->processes[rank].node + 1]++;
    }
    sum_up(made->first, nodes);
    for (int rank = all->procs - 1; rank >= 0; rank--) {
        made->ranks[--made->first[all->processes[rank].node + 1]] = rank;
    }
    shift(made->first, nodes, all->procs);
}

one_way *play_one_way_make(const play *all) {
    if (!is_eligible(all)) {
        return NULL;
    }
    size_t nodes = (size_t)all->network->nodes;
    one_way *made = calloc(1, sizeof *made);
    edges found = {.first = calloc(nodes + 1, sizeof *found.first),
                   .to = malloc((all->connection_count + 1) * sizeof *found.to),
                   .unknown = calloc(nodes, sizeof *found.unknown)};
    int32_t *stack = malloc(nodes * sizeof *stack);
    if (made != NULL) {
        made->nodes = malloc(nodes * sizeof *made->nodes);
        made->first = calloc(nodes + 1, sizeof *made->first);
        made->ranks = malloc((size_t)all->procs * sizeof *made->ranks);
    }
    int is_found = made != NULL && made->nodes != NULL && made->first != NULL && made->ranks != NULL &&
                   found.first != NULL && found.to != NULL && found.unknown != NULL && stack != NULL;
    if (is_found) {
        count_edges(all, &found);
        fill_edges(all, &found);
        is_found = order_nodes(&found, (int)nodes, made->nodes, stack) == (int)nodes;
    }
    free(found.first);
    free(found.to);
    free(found.unknown);
    free(stack);
    if (!is_found) {
        play_one_way_free(made);
        return NULL;
    }
    group_ranks(all, made);
    return made;
}

void play_one_way_free(one_way *of) {
    if (of != NULL) {
        free(of->nodes);
        free(of->first);
        free(of->ranks);
    }
    free(of);
}
