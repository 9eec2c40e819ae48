/* The experiments with tasks: a collective made of tasks, in which each node's leader notes when it is done with each.
 *
 *     tasks                    the whole collective
 *     tasks:FIRST:END:STEPS    tasks FIRST to END - 1 alone, and of these the steps in STEPS, such as sbib; if empty
 * all
 */
#ifndef COLLWISE_TASK_TIMES_H
#define COLLWISE_TASK_TIMES_H

#include "tasks.h"

#define TASK_STEPS_BYTES 32

typedef struct {
    size_t first, end;
    char steps[TASK_STEPS_BYTES];
    double start;
    double *ends; /* of the tasks since the start of their call, call after call */
    size_t count, room, calls;
    MPI_Comm comm;
} task_times;

/* Whether it is such an experiment; fills in which tasks it runs. */
int task_times_read(const char *experiment, task_times *wanted);
void task_times_free(task_times *made);

/* Runs the algorithm once. */
void task_times_run(task_times *of, const collwise_algorithm *algorithm, const collwise_call *call,
                    collwise_parameters with);

/* The medians of the ends over all calls but the first `skipped`, on process 0, one leader after another, by nodes;
 * `count` is how many there are. NULL elsewhere. Collective; freed with free(). */
double *task_times_gather(const task_times *from, size_t skipped, int root, size_t *count);

#endif
