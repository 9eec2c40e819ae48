/* The memory of windows (windows.h): a window that the processes of a node share, or one that they read by MPI_Get. */
#include "windows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };

struct collwise_window_memory {
    MPI_Win win;
    char *own, **segments; /* of the processes; only the own one if they are not shared */
    char *received;
};

/* A process's segment begins with a line for each counter and each process that writes it. */
static MPI_Aint line_of(const collwise_window *window, int which, int writer) {
    return (MPI_Aint)LINE_BYTES * ((MPI_Aint)which * window->size + writer);
}

static size_t place_of(const collwise_window *window, size_t slot) {
    return (size_t)line_of(window, COLLWISE_COUNTERS, 0) + slot;
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

void collwise_window_make_memory(collwise_window *of) {
    MPI_Comm node = of->comm;
    collwise_window_memory *made = collwise_allocate(sizeof *made, node);
    *made = (collwise_window_memory){.segments = collwise_allocate((size_t)of->size * sizeof *made->segments, node),
                                     .received = collwise_allocate(COLLWISE_CHUNK_BYTES, node)};
    MPI_Aint bytes = (MPI_Aint)place_of(of, 2 * COLLWISE_SLOTS * COLLWISE_CHUNK_BYTES);
    int lock = lock_machine(node);
    if (of->form == COLLWISE_WITHIN_SHARED) {
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &made->own, &made->win);
        for (int process = 0; process < of->size; process++) {
            MPI_Aint size;
            int unit;
            MPI_Win_shared_query(made->win, process, &size, &unit, &made->segments[process]);
        }
    } else {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, node, &made->own, &made->win);
    }
    unlock_machine(lock, node);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, made->win);
    memset(made->own, 0, (size_t)line_of(of, COLLWISE_COUNTERS, 0));
    MPI_Win_sync(made->win);
    PMPI_Barrier(node);
    of->memory = made;
}

void collwise_window_free(collwise_window *window) {
    MPI_Win_unlock_all(window->memory->win);
    MPI_Win_free(&window->memory->win);
    free(window->memory->segments);
    free(window->memory->received);
    free(window->memory);
    free(window);
}

/* --- Counters ----------------------------------------------------------------------------------------------------- */

/* In shared memory a counter lies in the segment of the process that writes it. Otherwise it lies in the segment of the
 * process that waits for the counter, which can read it without MPI_Get.
 *
 * While a value is not there, others may be reading by MPI_Get or waiting for a flush, which need MPI to run here too.
 * A probe does so only if it finds no message, and processes further on may have sent some. */
int collwise_window_told(const collwise_window *window, int process, collwise_counter which, uint64_t value) {
    const char *memory = window->memory->own;
    if (window->form == COLLWISE_WITHIN_SHARED) {
        memory = window->memory->segments[process];
    } else {
        MPI_Win_sync(window->memory->win);
    }
    if (atomic_load_explicit((_Atomic uint64_t *)(void *)(memory + line_of(window, which, process)),
                             memory_order_acquire) >= value) {
        return 1;
    }
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, COLLWISE_UNUSED_TAG, window->comm, &found, MPI_STATUS_IGNORE);
    return 0;
}

void collwise_window_tell(const collwise_window *window, int first, int end, collwise_counter which, uint64_t value) {
    MPI_Aint line = line_of(window, which, window->rank);
    MPI_Win win = window->memory->win;
    if (window->form == COLLWISE_WITHIN_SHARED) {
        atomic_store_explicit((_Atomic uint64_t *)(void *)(window->memory->own + line), value, memory_order_release);
        return;
    }
    MPI_Win_sync(win); /* what has been written to the own slots */
    for (int process = first; process < end; process++) {
        if (process != window->rank) {
            MPI_Accumulate(&value, 1, MPI_UINT64_T, process, line, 1, MPI_UINT64_T, MPI_REPLACE, win);
            MPI_Win_flush(process, win);
        }
    }
}

/* --- Slots -------------------------------------------------------------------------------------------------------- */

void collwise_window_write(const collwise_window *window, size_t slot, const char *data, size_t bytes) {
    collwise_copy(window->memory->own + place_of(window, slot), data, bytes);
}

static void get(const collwise_window *window, char *data, int process, size_t slot, size_t bytes) {
    MPI_Get(data, (int)bytes, MPI_BYTE, process, (MPI_Aint)place_of(window, slot), (int)bytes, MPI_BYTE,
            window->memory->win);
    MPI_Win_flush(process, window->memory->win);
}

void collwise_window_read(const collwise_window *window, char *data, int process, size_t slot, size_t bytes) {
    if (window->form == COLLWISE_WITHIN_SHARED) {
        collwise_copy(data, window->memory->segments[process] + place_of(window, slot), bytes);
    } else {
        get(window, data, process, slot, bytes);
    }
}

char *collwise_window_look(const collwise_window *window, int process, size_t slot, size_t bytes) {
    if (window->form == COLLWISE_WITHIN_SHARED) {
        return window->memory->segments[process] + place_of(window, slot);
    }
    get(window, window->memory->received, process, slot, bytes);
    return window->memory->received;
}
