/* Drives the measuring library for tests: measuring WHAT, which prints one line.
 *
 * clock: Clocks are apart by 1000 s a rank and drift by 0.1 s/s a rank. The largest difference between what processes
 * take for one instant, at once and after 0.4 s, and what the check says, with its bound.
 *
 * late N: By rounds, with process 1 held up before every N-th repetition. Status, repetitions, late starts, and the
 * longest repetition that counts.
 *
 * busy: 2 ms of work on process 1 and none elsewhere. Root 0's, maximum and global time.
 *
 * quantiles C: For 1 to 1100 degrees of freedom. */
#define _GNU_SOURCE
#include "collwise_measuring.h"
#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_PROCS = 64, READINGS = 1000 };
/* Longer than a busy machine keeps a process waiting for its core. */
#define HELD_UP_SECONDS 0.4
#define LATE_SECONDS 0.2

static double true_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct {
    int rank;
    double begun;
} wrong_clock;

static double read_wrong(void *context) {
    const wrong_clock *clock = context;
    return 1000.0 * clock->rank + (true_time() - clock->begun) * (1 + 0.1 * clock->rank);
}

static void busy_for(double seconds) {
    double until = true_time() + seconds;
    while (true_time() < until) {
    }
}

/* Global clock minus true time, of readings between which the process did not lose its core. */
static double ahead(const cw_session *session) {
    double found = 0, shortest = INFINITY;
    for (int i = 0; i < READINGS; i++) {
        double before = true_time(), global = cw_clock_seconds(session), after = true_time();
        if (after - before < shortest) {
            shortest = after - before;
            found = global - (before + after) / 2;
        }
    }
    return found;
}

/* The largest difference between processes of global clock minus true time, which is one clock on one machine. */
static double disagreement(const cw_session *session, int procs) {
    double mine = ahead(session), all[MAX_PROCS], least = INFINITY, greatest = -INFINITY;
    MPI_Allgather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < procs; i++) {
        least = fmin(least, all[i]);
        greatest = fmax(greatest, all[i]);
    }
    return greatest - least;
}

static void check_clock(int rank, int procs) {
    double begun = true_time(), offset, bound, at_once, later;
    MPI_Bcast(&begun, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    wrong_clock wrong = {rank, begun};
    cw_session *session = cw_open(MPI_COMM_WORLD, read_wrong, &wrong);
    for (int i = 0; i < 10; i++) {
        cw_clock_synchronise(session);
        busy_for(0.05);
    }
    cw_clock_synchronise(session);
    cw_clock_check(session, &offset, &bound);
    at_once = disagreement(session, procs);
    busy_for(0.4);
    later = disagreement(session, procs);
    if (rank == 0) {
        printf("%.9g %.9g %.9g %.9g\n", at_once, later, offset, bound);
    }
    cw_close(session);
}

/* Process 1's clock stands still for a while when it is read between the announcement of a start and the start. */
typedef struct {
    int rank, every, calls, readings;
} hook;

static void count_calls(void *context) {
    hook *mine = context;
    mine->calls++;
    mine->readings = 0;
}

static double read_late(void *context) {
    hook *mine = context;
    /* Behind an operation: its end, the arrival of the announcement, then the wait for the start. */
    if (++mine->readings == 3 && mine->rank == 1 && mine->calls % mine->every == 0) {
        busy_for(HELD_UP_SECONDS);
    }
    return true_time();
}

static void check_late(int rank, int every) {
    hook mine = {rank, every, 1, 0};
    cw_session *session = cw_open(MPI_COMM_WORLD, read_late, &mine);
    cw_method method = cw_usual_method();
    method.synchronisation = CW_ROUNDS;
    method.timing = CW_GLOBAL;
    method.min_repetitions = method.max_repetitions = 8;
    method.late_seconds = LATE_SECONDS;
    method.limit_seconds = 0;            /* a busy machine takes as long as it takes */
    method.clock_age_seconds = INFINITY; /* readings of a synchronisation would be counted as well */
    cw_result result;
    cw_measure(session, 0, count_calls, &mine, &method, &result);
    if (rank == 0) {
        printf("%d %d %d %.9g\n", (int)result.status, result.repetitions, result.late_starts, result.greatest);
    }
    cw_result_free(&result);
    cw_close(session);
}

static void busy_on_1(void *context) {
    if (*(const int *)context == 1) {
        busy_for(0.002);
    }
}

static void check_busy(int rank) {
    cw_session *session = cw_open(MPI_COMM_WORLD, NULL, NULL);
    cw_method method = cw_usual_method();
    for (int timing = CW_ROOT; timing <= CW_GLOBAL; timing++) {
        cw_result result;
        method.timing = (cw_timing)timing;
        cw_measure(session, 0, busy_on_1, &rank, &method, &result);
        if (rank == 0) {
            printf("%.9g ", result.median);
        }
        cw_result_free(&result);
    }
    if (rank == 0) {
        printf("\n");
    }
    cw_close(session);
}

static void count(void *context) { ++*(int *)context; }

/* A clock by which only calls take time, 2 ms each. */
static double read_calls(void *context) { return 0.002 * *(const int *)context; }

/* Prints the number of calls in two untimed and five timed repetitions of three calls, and the time of a call. */
static void check_calls(int rank) {
    int calls = 0;
    cw_session *session = cw_open(MPI_COMM_WORLD, read_calls, &calls);
    cw_method method = cw_usual_method();
    method.calls = 3;
    method.warmup = 2;
    method.min_repetitions = method.max_repetitions = 5;
    for (int timing = CW_ROOT; timing <= CW_MAXIMUM; timing++) {
        cw_result result;
        method.timing = (cw_timing)timing;
        cw_measure(session, 0, count, &calls, &method, &result);
        if (rank == 0) {
            printf("%d %.9g ", calls, result.mean);
        }
        cw_result_free(&result);
    }
    if (rank == 0) {
        printf("\n");
    }
    cw_close(session);
}

static void print_quantiles(double confidence) {
    for (int degrees = 1; degrees <= 1100; degrees++) {
        printf("%.17g ", cw_t_quantile(confidence, degrees));
    }
    printf("\n");
}

int main(int argc, char **argv) {
    int rank, procs;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "clock") == 0) {
        check_clock(rank, procs);
    } else if (strcmp(what, "late") == 0 && argc > 2) {
        check_late(rank, atoi(argv[2]));
    } else if (strcmp(what, "busy") == 0) {
        check_busy(rank);
    } else if (strcmp(what, "calls") == 0) {
        check_calls(rank);
    } else if (strcmp(what, "quantiles") == 0 && argc > 2) {
        print_quantiles(atof(argv[2]));
    }
    MPI_Finalize();
    return 0;
}
