/* Broadcasts and reductions through memory of the processes of one node: a window that they share, or one that they
 * read by MPI_Get. Both keep counters of chunks, which all processes count alike, and two slots for chunks in each
 * direction, so that one chunk is written while the one before is read:
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
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* What processes tell one another: how many chunks they have published, read, contributed to, and combined. */
typedef enum { PUBLISHED, READ, CONTRIBUTED, COMBINED, COUNTERS } counter;

enum { LINE_BYTES = 64, CHUNK_BYTES = 32 << 10, SLOTS = 2 };

/* A contribution's reader, and what it tells when it has combined that. */
typedef struct {
    int root;
    uint64_t combined;
} contribution;

struct collwise_window {
    collwise_within form;
    MPI_Comm comm;
    MPI_Win win;
    int rank, size;
    char *own, **segments;       /* of the processes; only the own one if they are not shared */
    uint64_t broadcast, reduced; /* chunks so far */
    uint64_t published[SLOTS];   /* what readers tell when they have read what lies in the own slot */
    contribution contributions[SLOTS];
    char *received;
};

/* A process's segment begins with a line for each counter and each process that writes it. */
static MPI_Aint line_of(const collwise_window *window, counter which, int writer) {
    return (MPI_Aint)LINE_BYTES * ((MPI_Aint)which * window->size + writer);
}

/* Chunks of broadcasts come before those of reductions. */
static size_t slot(const collwise_window *window, uint64_t chunk, int of_reduction) {
    size_t index = (size_t)(chunk % SLOTS) + (of_reduction ? SLOTS : 0);
    return (size_t)line_of(window, COUNTERS, 0) + index * CHUNK_BYTES;
}

/* What a process has told this one. In shared memory a counter lies with the process that writes it, else with the one
 * that is told, which then need not ask for it. */
static uint64_t told_by(const collwise_window *window, int process, counter which) {
    const char *memory = window->own;
    if (window->form == COLLWISE_WITHIN_SHARED) {
        memory = window->segments[process];
    } else {
        MPI_Win_sync(window->win);
    }
    return atomic_load_explicit((_Atomic uint64_t *)(void *)(memory + line_of(window, which, process)),
                                memory_order_acquire);
}

/* Tells processes `first` to `end` - 1. */
static void tell(const collwise_window *window, int first, int end, counter which, uint64_t value) {
    MPI_Aint line = line_of(window, which, window->rank);
    if (window->form == COLLWISE_WITHIN_SHARED) {
        atomic_store_explicit((_Atomic uint64_t *)(void *)(window->own + line), value, memory_order_release);
        return;
    }
    MPI_Win_sync(window->win); /* what has been written to the own slots */
    for (int process = first; process < end; process++) {
        if (process != window->rank) {
            MPI_Accumulate(&value, 1, MPI_UINT64_T, process, line, 1, MPI_UINT64_T, MPI_REPLACE, window->win);
            MPI_Win_flush(process, window->win);
        }
    }
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

/* Open MPI confuses the windows that several groups of processes make on one machine at the same time, such as those of
 * a split: they take turns by a lock of the machine, which the first process of a group holds. It does so only when all
 * of the group are there, since those who wait for the lock do not answer MPI meanwhile. */
static int lock_machine(MPI_Comm group) {
    int lock = -1;
    PMPI_Barrier(group);
    if (collwise_rank_in(group) == 0) {
        char path[sizeof P_tmpdir + 64];
        snprintf(path, sizeof path, "%s/collwise-windows-%ld", P_tmpdir, (long)getuid());
        lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    PMPI_Barrier(group);
    return lock;
}

static void unlock_machine(int lock, MPI_Comm group) {
    PMPI_Barrier(group);
    if (lock >= 0) {
        close(lock);
    }
}

static collwise_window *make(const collwise_levels *levels, collwise_within form) {
    MPI_Comm node = levels->node;
    collwise_window *made = collwise_allocate(sizeof *made, node);
    *made =
        (collwise_window){.form = form, .comm = node, .rank = collwise_rank_in(node), .size = collwise_size_of(node)};
    made->segments = collwise_allocate((size_t)made->size * sizeof *made->segments, node);
    made->received = collwise_allocate(CHUNK_BYTES, node);
    MPI_Aint bytes = (MPI_Aint)slot(made, 0, 1) + SLOTS * CHUNK_BYTES;
    int lock = lock_machine(node);
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
    unlock_machine(lock, node);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, made->win);
    memset(made->own, 0, (size_t)line_of(made, COUNTERS, 0));
    MPI_Win_sync(made->win);
    PMPI_Barrier(node);
    return made;
}

static void free_window(collwise_window *window) {
    MPI_Win_unlock_all(window->win);
    MPI_Win_free(&window->win);
    free(window->segments);
    free(window->received);
    free(window);
}

collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    collwise_hierarchy *of = collwise_hierarchy_of(comm);
    int is_useful = COLLWISE_POLLS_TAKE_TIME && collwise_node_size(levels->nodes, levels->own_node) > 1;
    if (of->windows[form] == NULL && is_useful) {
        of->windows[form] = make(levels, form);
        of->free_window = free_window;
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

/* The answer of a poll that found nothing yet. Others may be reading by MPI_Get or waiting for a flush, which need MPI
 * to run here too. A probe does so only if it finds no message, and processes further on may have sent some. */
static int not_yet(const collwise_window *window) {
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, COLLWISE_UNUSED_TAG, window->comm, &found, MPI_STATUS_IGNORE);
    return 0;
}

static int publish(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        uint64_t *there = &window->published[chunk % SLOTS];
        for (; of->next < window->size; of->next++) {
            if (of->next != window->rank && told_by(window, of->next, READ) < *there) {
                return not_yet(window);
            }
        }
        collwise_copy(window->own + slot(window, chunk, 0), place_in(of), chunk_left(of) * of->unit);
        *there = chunk + 1;
        tell(window, 0, window->size, PUBLISHED, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int read_published(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->broadcast;
        if (told_by(window, of->root, PUBLISHED) < chunk + 1) {
            return not_yet(window);
        }
        read_slot(window, place_in(of), of->root, slot(window, chunk, 0), chunk_left(of) * of->unit);
        tell(window, of->root, of->root + 1, READ, chunk + 1);
        window->broadcast++;
    }
    return 1;
}

static int contribute(void *state) {
    collwise_transfer *of = state;
    collwise_window *window = of->window;
    for (; of->done < of->count; next_chunk(of)) {
        uint64_t chunk = window->reduced;
        contribution *there = &window->contributions[chunk % SLOTS];
        if (told_by(window, there->root, COMBINED) < there->combined) {
            return not_yet(window);
        }
        collwise_copy(window->own + slot(window, chunk, 1), place_in(of), chunk_left(of) * of->unit);
        *there = (contribution){.root = of->root, .combined = chunk + 1};
        tell(window, of->root, of->root + 1, CONTRIBUTED, chunk + 1);
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
                continue;
            }
            if (told_by(window, of->next, CONTRIBUTED) < chunk + 1) {
                return not_yet(window);
            }
            combine(of, of->next, slot(window, chunk, 1));
        }
        tell(window, 0, window->size, COMBINED, chunk + 1);
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
