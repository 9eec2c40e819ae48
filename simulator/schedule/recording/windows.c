/* Memory of a node's processes, as windows.c uses it: copies, and counters that processes tell one another. Of these
 * each value is awaited in turn, if at all, so that values are not recorded. */
#include "windows.h"
#include "recording.h"

#include <stdlib.h>
#include <string.h>

struct collwise_window_memory {
    uint64_t *awaited[COLLWISE_COUNTERS]; /* the last values of each process's */
};

/* Ways have a number for each counter. */
static void make_room_for_ways(recording *to) {
    size_t procs = (size_t)to->made->procs, room = RECORDING_WAYS * procs;
    if (!to->made->has_windows) {
        to->made->has_windows = 1;
        to->seen_by = recording_checked(realloc(to->seen_by, room * sizeof *to->seen_by));
        memset(to->seen_by + procs, 0, (room - procs) * sizeof *to->seen_by);
        to->sources = recording_checked(realloc(to->sources, room * sizeof *to->sources));
    }
}

void collwise_window_make_memory(collwise_window *of) {
    make_room_for_ways(recording_now);
    of->memory = collwise_allocate(sizeof *of->memory, of->comm);
    for (int which = 0; which < COLLWISE_COUNTERS; which++) {
        size_t bytes = (size_t)of->size * sizeof(uint64_t);
        of->memory->awaited[which] = memset(collwise_allocate(bytes, of->comm), 0, bytes);
    }
}

/* All belongs to the process that is being recorded. */
void collwise_window_free(collwise_window *window) { (void)window; }

static uint32_t relative_of(const collwise_window *window, int process) {
    return recording_relative(recording_process_of(window->comm, process));
}

int collwise_window_told(const collwise_window *window, int process, collwise_counter which, uint64_t value) {
    uint64_t *awaited = &window->memory->awaited[which][process];
    if (value > *awaited + 1) {
        recording_fail(recording_now,
                       "process %d uses a node's memory with several roots, and only one of them can be recorded",
                       recording_now->now.rank);
    }
    if (value > *awaited) {
        *awaited = value;
        recording_add(SCHEDULE_AWAIT, relative_of(window, process), which);
        recording_wait(recording_now->now.requests++, 1);
    }
    return 1;
}

void collwise_window_tell(const collwise_window *window, int first, int end, collwise_counter which, uint64_t value) {
    uint32_t counter = which;
    if (window->form == COLLWISE_WITHIN_ONE_SIDED) {
        counter |= (recording_size_number(recording_now, sizeof value) + 1) << SCHEDULE_COUNTER_BITS;
    }
    for (int process = first; process < end; process++) {
        if (process != window->rank) {
            recording_add(SCHEDULE_TELL, relative_of(window, process), counter);
        }
    }
}

static void move(size_t bytes, uint32_t gets) {
    if (bytes > 0) {
        recording_add(SCHEDULE_MOVE, gets, recording_size_number(recording_now, bytes));
    }
}

void collwise_window_write(const collwise_window *window, size_t slot, const char *data, size_t bytes) {
    (void)window, (void)slot, (void)data;
    move(bytes, 0);
}

void collwise_window_read(const collwise_window *window, char *data, int process, size_t slot, size_t bytes) {
    (void)data, (void)process, (void)slot;
    move(bytes, window->form == COLLWISE_WITHIN_ONE_SIDED);
}

char *collwise_window_look(const collwise_window *window, int process, size_t slot, size_t bytes) {
    (void)process, (void)slot;
    move(window->form == COLLWISE_WITHIN_ONE_SIDED ? bytes : 0, 1);
    return recording_payload(3);
}
