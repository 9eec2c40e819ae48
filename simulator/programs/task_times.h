/* The times of tasks: in a collective made of tasks, each node's leader notes when it is done with each of them. */
#ifndef COLLWISE_TASK_TIMES_H
#define COLLWISE_TASK_TIMES_H

#include "task_window.h"
#include "tasks.h"

typedef struct {
    task_window window;
    double start;
    double *ends; /* of the tasks since the start of their call, call after call */
    size_t count, room, calls;
    MPI_Comm comm;
} task_times;

void program_task_times_free(task_times *made);

/* Runs the algorithm once. */
void program_task_times_run(task_times *of, const collwise_algorithm *algorithm, const collwise_call *call,
                            collwise_parameters with);

/* The medians of the ends over all calls but the first `skipped`, on process 0, by leader in node order; `count` is
 * how many there are. NULL elsewhere. Collective; freed with free(). */
double *program_task_times_gather(const task_times *from, size_t skipped, int root, size_t *count);

#endif
