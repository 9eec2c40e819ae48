/* Sequences of tasks. */
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 32 };

collwise_step *collwise_add_step(collwise_steps *to, const char *name, size_t lag, MPI_Comm comm) {
    if (to->count == to->room) {
        to->room = 2 * to->room + 4;
        collwise_step *longer = collwise_allocate((size_t)to->room * sizeof *longer, comm);
        for (int i = 0; i < to->count; i++) {
            longer[i] = to->list[i];
        }
        free(to->list);
        to->list = longer;
    }
    collwise_step *added = &to->list[to->count++];
    *added = (collwise_step){.name = name, .lag = lag, .comm = comm};
    return added;
}

static collwise_part segment_at(const collwise_segment *segments, size_t index) {
    size_t first = segments->first + index * segments->size;
    return (collwise_part){.first = first, .count = collwise_min(segments->size, segments->end - first)};
}

static int belongs(const collwise_step *step, size_t task, size_t segment_count, const collwise_observer *observer) {
    int is_wanted = observer == NULL || observer->steps == NULL || strstr(observer->steps, step->name) != NULL;
    return is_wanted && task >= step->lag && task - step->lag < segment_count;
}

/* Tells of a task, by the names of its steps, the last ones of a segment's way first. */
static void tell(const collwise_observer *observer, const collwise_steps *steps, size_t task, size_t segment_count) {
    char name[NAME_BYTES] = "";
    for (size_t lag = steps->last_lag + 1; lag-- > 0;) {
        for (int i = 0; i < steps->count; i++) {
            const collwise_step *step = &steps->list[i];
            if (step->lag == lag && belongs(step, task, segment_count, observer) && strstr(name, step->name) == NULL) {
                strncat(name, step->name, NAME_BYTES - 1 - strlen(name));
            }
        }
    }
    observer->after(observer->context, &(collwise_task){.index = task, .name = name});
}

static void run_task(const collwise_steps *steps, size_t task, const collwise_segment *segments, size_t segment_count,
                     collwise_rounds **under_way, const collwise_observer *observer) {
    int started = 0;
    for (int i = 0; i < steps->count; i++) {
        collwise_step *step = &steps->list[i];
        if (belongs(step, task, segment_count, observer)) {
            size_t index = task - step->lag;
            collwise_rounds_clear(&step->rounds);
            step->add(&step->rounds, step->context, segment_at(segments, index), index);
            collwise_rounds_start(&step->rounds);
            under_way[started++] = &step->rounds;
        }
    }
    collwise_rounds_wait(under_way, started);
    if (observer != NULL && observer->after != NULL) {
        tell(observer, steps, task, segment_count);
    }
}

void collwise_run_steps(collwise_steps *steps, collwise_segment segments, MPI_Comm comm) {
    const collwise_observer *observer = collwise_observer_of(comm);
    size_t count = collwise_segments_left(&segments), tasks = count + steps->last_lag, first = 0, end = tasks;
    if (observer != NULL) {
        first = observer->first_task;
        end = observer->end_task == 0 ? tasks : collwise_min(observer->end_task, tasks);
    }
    collwise_rounds **under_way = collwise_allocate((size_t)steps->count * sizeof *under_way, comm);
    for (int i = 0; i < steps->count; i++) {
        collwise_step *step = &steps->list[i];
        step->rounds = collwise_rounds_make(step->comm);
    }
    for (size_t task = first; task < end; task++) {
        run_task(steps, task, &segments, count, under_way, observer);
    }
    for (int i = 0; i < steps->count; i++) {
        collwise_rounds_free(&steps->list[i].rounds);
    }
    free(under_way);
    free(steps->list);
}
