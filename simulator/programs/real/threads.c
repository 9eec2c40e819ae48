/* Collectives of two threads at once, each on a communicator of its own. */
#include "verify.h"

#include <pthread.h>
#include <stdio.h>

enum { TURNS = 3 };

typedef struct {
    const collwise_algorithm *algorithm;
    unsigned serial;
    MPI_Comm comm;
    verify_outcome outcome;
    char complaint[VERIFY_TEXT];
} task;

static void *run(void *argument) {
    task *task = argument;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        if (verify_some_call(task->algorithm, task->serial + turn, task->comm, task->complaint) == VERIFY_WRONG) {
            task->outcome = VERIFY_WRONG;
        }
    }
    return NULL;
}

verify_outcome verify_two_threads(const collwise_algorithm *algorithm, MPI_Comm world, char complaint[VERIFY_TEXT]) {
    enum { THREADS = 2 };
    task tasks[THREADS];
    pthread_t other;
    int granted;
    MPI_Query_thread(&granted);
    if (granted < MPI_THREAD_MULTIPLE) {
        return VERIFY_NOT_APPLICABLE;
    }
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (task){.algorithm = algorithm, .serial = 10 * (unsigned)i, .outcome = VERIFY_RIGHT};
        MPI_Comm_dup(world, &tasks[i].comm);
    }
    if (pthread_create(&other, NULL, run, &tasks[1]) != 0) {
        fprintf(stderr, "verify: no second thread\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run(&tasks[0]);
    pthread_join(other, NULL);
    verify_outcome outcome = VERIFY_RIGHT;
    for (int i = 0; i < THREADS; i++) {
        if (tasks[i].outcome == VERIFY_WRONG) {
            outcome = VERIFY_WRONG;
            snprintf(complaint, VERIFY_TEXT, "%s", tasks[i].complaint);
        }
        MPI_Comm_free(&tasks[i].comm);
    }
    return outcome;
}
