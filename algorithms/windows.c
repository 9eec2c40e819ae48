/* Broadcasts and reductions through memory of the processes of one node: a window that they share, or one that they
 * read by MPI_Get (windows.h). Both keep counters of chunks, which all processes count alike, and two slots for
 * chunks in each direction, so that one chunk is written while the one before is read:
 *
 *     broadcast, root:     for each chunk: wait until all have read what lies in its slot; write it; publish it
 *                others:   for each chunk: wait until it is published; read it; say so
 *     reduction, root:     for each chunk: for each process: wait for its contribution, combine it; say so of all
 *                others:   for each chunk: wait until what lies in its slot is combined; write it; say so
 *
 * The root changes from call to call, and only those wait for the end of a call who need its data. So calls with
 * several roots are under way at the same time, in broadcasts as in reductions, and two rules keep them apart:
 *
 * - Each counter has one writer and only grows: a process tells by it how far it has come, and counts the chunks in
 *   their order.
 * - A slot is written by its process alone, and only when all who were to read what lies in it have told that they are
 *   done. The process remembers for each slot who they are, and what they tell then: after a broadcast they are all
 *   others, after a reduction the root of that chunk, who need not be the root of the next one.
 *
 * Waiting is a poll of the operation, so that messages between nodes go on meanwhile. */
#include "windows.h"

/* Chunks of broadcasts come before those of reductions. */
static size_t slot(uint64_t chunk, int of_reduction) {
    size_t index = (size_t)(chunk % COLLWISE_SLOTS) + (of_reduction ? COLLWISE_SLOTS : 0);
    return index * COLLWISE_CHUNK_BYTES;
}

collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    collwise_hierarchy *of = collwise_hierarchy_of(comm);
    MPI_Comm node = levels->node;
    int is_useful = COLLWISE_POLLS_TAKE_TIME && collwise_node_size(levels->nodes, levels->own_node) > 1;
    if (of->windows[form] == NULL && is_useful) {
        collwise_window *made = collwise_allocate(sizeof *made, node);
        *made = (collwise_window){
            .form = form, .comm = node, .rank = collwise_rank_in(node), .size = collwise_size_of(node)};
        collwise_window_make_memory(made);
        of->windows[form] = made;
        of->free_window = collwise_window_free;
    }
    return of->windows[form];
}

/* --- Transfers ---------------------------------------------------------------------------------------------------- */

static size_t chunk_left(const collwise_transfer *of) { return collwise_min(of->chunk, of->count - of->done); }

static char *place_in(const collwise_transfer *of) { return of->data + of->done * of->unit; }

static void next_chunk(collwise_transfer *of) {
    of->done += chunk_left(of);
    of->next = 0;
}

static int publish(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        uint64_t *there = &window->published[chunk % COLLWISE_SLOTS];
        for (; of->next < window->size; of->next++) {
            if (of->next != window->rank && !collwise_window_told(window, of->next, COLLWISE_READ, *there)) {
                return 0;
            }
        }
        collwise_window_write(window, slot(chunk, 0), place_in(of), chunk_left(of) * of->unit);
        *there = chunk + 1;
        collwise_window_tell(window, 0, window->size, COLLWISE_PUBLISHED, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int read_published(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        if (!collwise_window_told(window, of->root, COLLWISE_PUBLISHED, chunk + 1)) {
            return 0;
        }
        collwise_window_read(window, place_in(of), of->root, slot(chunk, 0), chunk_left(of) * of->unit);
        collwise_window_tell(window, of->root, of->root + 1, COLLWISE_READ, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int contribute(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->reduced;
        collwise_contribution *there = &window->contributions[chunk % COLLWISE_SLOTS];
        if (!collwise_window_told(window, there->root, COLLWISE_COMBINED, there->combined)) {
            return 0;
        }
        collwise_window_write(window, slot(chunk, 1), place_in(of), chunk_left(of) * of->unit);
        *there = (collwise_contribution){.root = of->root, .combined = chunk + 1};
        collwise_window_tell(window, of->root, of->root + 1, COLLWISE_CONTRIBUTED, chunk + 1);
        window->reduced++;
    }
    return 1;
}

static void combine(const collwise_transfer *of, int process, size_t at) {
    const collwise_window *window = of->window;
    size_t elements = chunk_left(of);
    char *received = collwise_window_look(window, process, at, elements * of->unit);
    collwise_combine_received(of->op, place_in(of), received, elements, process < window->rank);
}

static int collect(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->reduced;
        for (; of->next < window->size; of->next++) {
            if (of->next == window->rank) {
                continue;
            }
            if (!collwise_window_told(window, of->next, COLLWISE_CONTRIBUTED, chunk + 1)) {
                return 0;
            }
            combine(of, of->next, slot(chunk, 1));
        }
        collwise_window_tell(window, 0, window->size, COLLWISE_COMBINED, chunk + 1);
        window->reduced++;
    }
    return 1;
}

int collwise_window_takes(size_t element_bytes) { return element_bytes <= COLLWISE_CHUNK_BYTES; }

void collwise_add_window_bcast(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                               char *data, size_t bytes) {
    *state = (collwise_transfer){
        .window = window, .root = root, .data = data, .unit = 1, .count = bytes, .chunk = COLLWISE_CHUNK_BYTES};
    collwise_add_poll(to, window->rank == root ? publish : read_published, state);
}

void collwise_add_window_reduce(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                                char *sum, size_t elements, const collwise_operation *op) {
    *state = (collwise_transfer){.window = window,
                                 .root = root,
                                 .data = sum,
                                 .unit = op->element_bytes,
                                 .count = elements,
                                 .chunk = COLLWISE_CHUNK_BYTES / op->element_bytes,
                                 .op = op};
    collwise_add_poll(to, window->rank == root ? collect : contribute, state);
}
