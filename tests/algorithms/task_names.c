/* Prints the tasks of a collective for which an observer is called.
 *
 *     task_names COLLECTIVE ALGORITHM SEGMENTS FIRST_TASK END_TASK STEPS [by-socket]
 *
 * Two processes share a node; by socket, two share a socket and four a node. Each process of the first node prints a
 * line: its rank and the names of its tasks, '-' where it has nothing to do. END_TASK 0 and STEPS '-' stand for all. */
#include "tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT_BYTES = 64 };

typedef struct {
    char names[1024];
    size_t next; /* task */
} told;

static void note(void *context, const collwise_task *task) {
    told *to = context;
    if (task->index != to->next++) {
        strcat(to->names, " (out of turn)");
    }
    strcat(strcat(to->names, " "), task->name[0] == '\0' ? "-" : task->name);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 7) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank, by_socket = argc > 7, on_node = by_socket ? 4 : 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    collwise_place(MPI_COMM_WORLD, rank / on_node, rank / 2);
    int procs, bytes = atoi(argv[3]) * SEGMENT_BYTES;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    char *own = calloc((size_t)(procs * bytes), 1), *result = calloc((size_t)(procs * bytes), 1);
    collwise_call call = {.send = own,
                          .send_count = bytes,
                          .send_type = MPI_BYTE,
                          .receive = result,
                          .receive_count = bytes,
                          .receive_type = MPI_BYTE,
                          .op = MPI_BOR,
                          .comm = MPI_COMM_WORLD};
    told tasks = {.next = (size_t)atoi(argv[4])};
    collwise_observer observer = {.first_task = (size_t)atoi(argv[4]),
                                  .end_task = (size_t)atoi(argv[5]),
                                  .steps = strcmp(argv[6], "-") == 0 ? NULL : argv[6],
                                  .after = note,
                                  .context = &tasks};
    collwise_parameters with = {.segment_bytes = SEGMENT_BYTES};
    if (by_socket) {
        with.within = COLLWISE_WITHIN_SOCKETS;
    }
    collwise_run_tasks(collwise_find(argv[1], argv[2]), &call, with, &observer);
    for (int one = 0; one < on_node; one++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (one == rank) {
            printf("%d%s\n", rank, tasks.names);
            fflush(stdout);
        }
    }
    free(own);
    free(result);
    MPI_Finalize();
}
