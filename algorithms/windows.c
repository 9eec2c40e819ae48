/* Broadcasts and reductions through memory of the processes of one node: a window that they share, or one that they
 * read by MPI_Get. Both keep counters of chunks, which all processes count alike, and two slots for chunks in each
 * direction, so that one chunk is written while the one before is read:
 *
 *     broadcast, root:     for each chunk: wait until all have read the chunk two before it; write it; publish it
 *                others:   for each chunk: wait until it is published; read it; say so
 *     reduction, root:     for each chunk: for each process: wait for its contribution, combine it, say so
 *                others:   for each chunk: wait until the chunk two before it is combined; write it; say so
 *
 * Waiting is a poll of the operation, so that messages between nodes go on meanwhile. */
#include "tasks.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* The counters of a process, of chunks: */
typedef enum { PUBLISHED, READ, CONTRIBUTED, COMBINED, COUNTERS } counter;

enum { LINE_BYTES = 64, HEADER_BYTES = COUNTERS * LINE_BYTES, CHUNK_BYTES = 32 << 10, SLOTS = 2 };

struct collwise_window {
    collwise_within form;
    MPI_Comm comm;
    MPI_Win win;
    int rank, size;
    char *own, **segments;       /* of the processes; only the own one if they are not shared */
    uint64_t broadcast, reduced; /* chunks so far */
    char *received;
};

/* Chunks of broadcasts come before those of reductions. */
static size_t slot(uint64_t chunk, int of_reduction) {
    return HEADER_BYTES + ((size_t)(chunk % SLOTS) + (of_reduction ? SLOTS : 0)) * CHUNK_BYTES;
}

static MPI_Aint place_of(counter which) { return (MPI_Aint)which * LINE_BYTES; }

static uint64_t count_of(const collwise_window *window, int process, counter which) {
    if (window->form == COLLWISE_WITHIN_SHARED) {
        _Atomic uint64_t *at = (void *)(window->segments[process] + place_of(which));
        return atomic_load_explicit(at, memory_order_acquire);
    }
    uint64_t nothing = 0, found;
    MPI_Fetch_and_op(&nothing, &found, MPI_UINT64_T, process, place_of(which), MPI_NO_OP, window->win);
    MPI_Win_flush(process, window->win);
    return found;
}

static void set_count(const collwise_window *window, int process, counter which, uint64_t value) {
    if (window->form == COLLWISE_WITHIN_SHARED) {
        _Atomic uint64_t *at = (void *)(window->segments[process] + place_of(which));
        atomic_store_explicit(at, value, memory_order_release);
        return;
    }
    MPI_Win_sync(window->win); /* what has been written to the own slots */
    MPI_Accumulate(&value, 1, MPI_UINT64_T, process, place_of(which), 1, MPI_UINT64_T, MPI_REPLACE, window->win);
    MPI_Win_flush(process, window->win);
}

static void read_slot(const collwise_window *window, char *data, int process, size_t at, size_t bytes) {
    if (window->form == COLLWISE_WITHIN_SHARED) {
        collwise_copy(data, window->segments[process] + at, bytes);
        return;
    }
    MPI_Get(data, (int)bytes, MPI_BYTE, process, (MPI_Aint)at, (int)bytes, MPI_BYTE, window->win);
    MPI_Win_flush(process, window->win);
}

/* --- Making one --------------------------------------------------------------------------------------------------- */

#ifdef SMPI_SHARED_MALLOC

/* Polling takes no simulated time there, so that nobody would ever go on. */
static collwise_window *make(const collwise_levels *levels, collwise_within form) {
    (void)levels, (void)form;
    return NULL;
}

#else

static collwise_window *make(const collwise_levels *levels, collwise_within form) {
    MPI_Comm node = levels->node;
    collwise_window *made = collwise_allocate(sizeof *made, node);
    *made =
        (collwise_window){.form = form, .comm = node, .rank = collwise_rank_in(node), .size = collwise_size_of(node)};
    made->segments = collwise_allocate((size_t)made->size * sizeof *made->segments, node);
    made->received = collwise_allocate(CHUNK_BYTES, node);
    MPI_Aint bytes = (MPI_Aint)slot(0, 1) + SLOTS * CHUNK_BYTES;
    if (form == COLLWISE_WITHIN_SHARED) {
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &made->own, &made->win);
        for (int process = 0; process < made->size; process++) {
            MPI_Aint size;
            int unit;
            MPI_Win_shared_query(made->win, process, &size, &unit, &made->segments[process]);
        }
    } else {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, node, &made->own, &made->win);
    }
    MPI_Win_lock_all(MPI_MODE_NOCHECK, made->win);
    for (int which = 0; which < COUNTERS; which++) {
        set_count(made, made->rank, (counter)which, 0);
    }
    PMPI_Barrier(node);
    return made;
}

#endif

/* Open MPI confuses the windows that different groups of processes make on one machine at the same time: nodes that may
 * be one machine take turns. */
static void make_all(collwise_hierarchy *of, const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    int turns = of->is_placed ? levels->nodes->nodes : 1;
    for (int turn = 0; turn < turns; turn++) {
        if ((turns == 1 || turn == levels->own_node) && collwise_node_size(levels->nodes, levels->own_node) > 1) {
            of->windows[form] = make(levels, form);
        }
        if (turns > 1) {
            PMPI_Barrier(comm);
        }
    }
    of->has_windows[form] = 1;
}

collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    collwise_hierarchy *of = collwise_hierarchy_of(comm);
    if (!of->has_windows[form]) {
        make_all(of, levels, form, comm);
    }
    return of->windows[form];
}

void collwise_window_free(collwise_window *window) {
    MPI_Win_unlock_all(window->win);
    MPI_Win_free(&window->win);
    free(window->segments);
    free(window->received);
    free(window);
}

/* --- Transfers ---------------------------------------------------------------------------------------------------- */

static size_t chunk_left(const collwise_transfer *of) { return collwise_least(of->chunk, of->count - of->done); }

static char *place_in(const collwise_transfer *of) { return of->data + of->done * of->unit; }

static void next_chunk(collwise_transfer *of) {
    of->done += chunk_left(of);
    of->next = 0;
}

/* The answer of a poll that found nothing yet. Others may be reading by MPI_Get, which needs MPI to run here too. */
static int not_yet(const collwise_window *window) {
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window->comm, &found, MPI_STATUS_IGNORE);
    return 0;
}

static int publish(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        for (; of->next < window->size; of->next++) {
            if (chunk >= SLOTS && count_of(window, of->next, READ) < chunk + 1 - SLOTS) {
                return not_yet(window);
            }
        }
        collwise_copy(window->own + slot(chunk, 0), place_in(of), chunk_left(of) * of->unit);
        set_count(window, window->rank, PUBLISHED, chunk + 1);
        set_count(window, window->rank, READ, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int read_published(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        if (count_of(window, of->root, PUBLISHED) < chunk + 1) {
            return not_yet(window);
        }
        read_slot(window, place_in(of), of->root, slot(chunk, 0), chunk_left(of) * of->unit);
        set_count(window, window->rank, READ, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int contribute(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->reduced;
        if (chunk >= SLOTS && count_of(window, window->rank, COMBINED) < chunk + 1 - SLOTS) {
            return not_yet(window);
        }
        collwise_copy(window->own + slot(chunk, 1), place_in(of), chunk_left(of) * of->unit);
        set_count(window, window->rank, CONTRIBUTED, chunk + 1);
        window->reduced++;
    }
    return 1;
}

static void combine(const collwise_transfer *of, int process, size_t at) {
    collwise_window *window = of->window;
    size_t elements = chunk_left(of);
    char *received = window->received;
    if (window->form == COLLWISE_WITHIN_SHARED) {
        received = window->segments[process] + at;
    } else {
        read_slot(window, received, process, at, elements * of->unit);
    }
    collwise_combine_received(of->op, place_in(of), received, elements, process < window->rank);
}

static int collect(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->reduced;
        for (; of->next < window->size; of->next++) {
            if (of->next == window->rank) {
                set_count(window, of->next, CONTRIBUTED, chunk + 1);
            } else if (count_of(window, of->next, CONTRIBUTED) < chunk + 1) {
                return not_yet(window);
            } else {
                combine(of, of->next, slot(chunk, 1));
            }
            set_count(window, of->next, COMBINED, chunk + 1);
        }
        window->reduced++;
    }
    return 1;
}

int collwise_window_takes(size_t element_bytes) { return element_bytes <= CHUNK_BYTES; }

void collwise_add_window_bcast(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                               char *data, size_t bytes) {
    *state = (collwise_transfer){
        .window = window, .root = root, .data = data, .unit = 1, .count = bytes, .chunk = CHUNK_BYTES};
    collwise_add_poll(to, window->rank == root ? publish : read_published, state);
}

void collwise_add_window_reduce(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                                char *sum, size_t elements, const collwise_operation *op) {
    *state = (collwise_transfer){.window = window,
                                 .root = root,
                                 .data = sum,
                                 .unit = op->element_bytes,
                                 .count = elements,
                                 .chunk = CHUNK_BYTES / op->element_bytes,
                                 .op = op};
    collwise_add_poll(to, window->rank == root ? collect : contribute, state);
}
