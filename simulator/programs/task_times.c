#include "task_times.h"

#include <stdlib.h>

void program_task_times_free(task_times *made) { free(made->ends); }

static void note_end(void *context, const collwise_task *task) {
    task_times *to = context;
    double now = MPI_Wtime();
    (void)task;
    if (to->count == to->room) {
        to->room = 2 * to->room + 16;
        double *longer = collwise_allocate(to->room * sizeof *longer, to->comm);
        for (size_t i = 0; i < to->count; i++) {
            longer[i] = to->ends[i];
        }
        free(to->ends);
        to->ends = longer;
    }
    to->ends[to->count++] = now - to->start;
}

void program_task_times_run(task_times *of, const collwise_algorithm *algorithm, const collwise_call *call,
                            collwise_parameters with) {
    collwise_observer observer = {.first_task = of->window.first,
                                  .end_task = of->window.end,
                                  .steps = of->window.steps[0] == '\0' ? NULL : of->window.steps,
                                  .after = note_end,
                                  .context = of};
    of->comm = call->comm;
    of->calls++;
    of->start = MPI_Wtime();
    collwise_run_tasks(algorithm, call, with, &observer);
}

static int compare(const void *left, const void *right) {
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

/* The median of a task's ends over the calls that count. */
static double median_end(const task_times *from, size_t tasks, size_t task, size_t skipped, double *sorted) {
    size_t count = from->calls - skipped;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = from->ends[(skipped + i) * tasks + task];
    }
    qsort(sorted, count, sizeof *sorted, compare);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double *program_task_times_gather(const task_times *from, size_t skipped, int root, size_t *count) {
    int rank;
    MPI_Comm_rank(from->comm, &rank);
    if (skipped >= from->calls) {
        skipped = 0;
    }
    collwise_levels levels = collwise_levels_of(root, collwise_private(from->comm));
    const collwise_nodes *nodes = levels.nodes;
    size_t tasks = from->count / from->calls, leaders = rank == 0 ? (size_t)nodes->nodes : 1;
    double *all = collwise_allocate((leaders * tasks + 1) * sizeof *all, from->comm);
    double *sorted = collwise_allocate(from->calls * sizeof *sorted, from->comm);
    for (size_t task = 0; task < tasks; task++) {
        all[task] = median_end(from, tasks, task, skipped, sorted);
    }
    free(sorted);
    if (rank != 0 && levels.is_leader) {
        MPI_Send(all, (int)tasks, MPI_DOUBLE, 0, 0, from->comm);
    }
    for (int node = 0; rank == 0 && node < nodes->nodes; node++) {
        int place = nodes->place_of[root], last = collwise_node_size(nodes, node) - 1;
        int leader = nodes->ranks[nodes->first[node] + (place < last ? place : last)];
        if (leader != 0) {
            MPI_Recv(all + (size_t)node * tasks, (int)tasks, MPI_DOUBLE, leader, 0, from->comm, MPI_STATUS_IGNORE);
        }
    }
    *count = leaders * tasks;
    if (rank != 0) {
        free(all);
        all = NULL;
    }
    return all;
}
