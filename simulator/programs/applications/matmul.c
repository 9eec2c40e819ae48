/* Multiplication C = A B of square matrices by a master and workers (O'Flynn 2009, section 7.3): the first process
 * scatters the rows of A in proportion to the processes' speeds, broadcasts B, and gathers the rows of C that each
 * process, itself included, has multiplied.
 *
 *     matmul [--size N] [--repetitions R] [--fastest S] [--rate OPERATIONS_PER_SECOND]
 *
 * Matrices have N x N numbers of 8 bytes. Speeds go from 1 to S around the processes, in whole steps; with S = 1 all
 * are alike. With S = 0 they are those of the processors, relative to the first one's: as described in simulation, else
 * measured by multiplying a row, as in the thesis. With --rate a process multiplies at the rate times its speed. An
 * operation is an addition or multiplication. */
#include "application.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    int size;
    double *speeds;
    int *counts, *displacements; /* numbers of each process's rows, and where they begin */
    double *a, *b, *c, *own_a, *own_c;
} matrices;

static void multiply(const double *a, const double *b, double *c, int rows, int size) {
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < size; j++) {
            c[i * size + j] = 0;
        }
        for (int k = 0; k < size; k++) {
            for (int j = 0; j < size; j++) {
                c[i * size + j] += a[i * size + k] * b[k * size + j];
            }
        }
    }
}

/* The operations per second of multiplying a row, the best of a few. */
static double measured_speed(int size) {
    enum { TRIES = 3 };
    double *row = calloc((size_t)size, sizeof *row), *result = calloc((size_t)size, sizeof *result);
    double *b = calloc((size_t)size * (size_t)size, sizeof *b), least = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        double start = MPI_Wtime();
        multiply(row, b, result, 1, size);
        least = fmin(least, MPI_Wtime() - start);
    }
    free(row);
    free(result);
    free(b);
    return 2.0 * size * size / fmax(least, MPI_Wtick());
}

static double *speeds_of(const application *app, int size, long fastest) {
    double *speeds = calloc((size_t)app->procs, sizeof *speeds);
    for (int rank = 0; rank < app->procs && fastest > 0; rank++) {
        speeds[rank] = 1 + rank % (int)fastest;
    }
    if (fastest == 0) {
        double own = application_host_speed(app);
        own = own > 0 ? own : measured_speed(size);
        MPI_Allgather(&own, 1, MPI_DOUBLE, speeds, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int rank = app->procs - 1; rank >= 0; rank--) {
            speeds[rank] /= speeds[0];
        }
    }
    return speeds;
}

/* Rows in proportion to speeds: process r ends at the share of rows that is the sum of speeds up to its own. */
static void deal(matrices *m, int procs) {
    double all = 0, sum = 0;
    for (int rank = 0; rank < procs; rank++) {
        all += m->speeds[rank];
    }
    int next = 0;
    for (int rank = 0; rank < procs; rank++) {
        sum += m->speeds[rank];
        int end = (int)lround(sum / all * m->size);
        m->displacements[rank] = next * m->size;
        m->counts[rank] = (end - next) * m->size;
        next = end;
    }
}

static double entry(int i, int j, unsigned which) {
    return (double)application_noise((unsigned)i, (unsigned)j + which, 201) - 100;
}

static matrices make(const application *app, int size, long fastest) {
    matrices m = {.size = size, .speeds = speeds_of(app, size, fastest)};
    m.counts = calloc((size_t)app->procs, sizeof *m.counts);
    m.displacements = calloc((size_t)app->procs, sizeof *m.displacements);
    deal(&m, app->procs);
    size_t all = (size_t)size * (size_t)size * sizeof(double), own = (size_t)m.counts[app->rank] * sizeof(double);
    m.a = application_allocate(app, app->rank == 0 ? all : 0);
    m.b = application_allocate(app, all);
    m.c = application_allocate(app, app->rank == 0 ? all : 0);
    m.own_a = application_allocate(app, own);
    m.own_c = application_allocate(app, own);
    for (int i = 0; app->rank == 0 && app->rate == 0 && i < size * size; i++) {
        m.a[i] = entry(i / size, i % size, 0);
        m.b[i] = entry(i / size, i % size, 1U << 20);
    }
    return m;
}

static void drop(const application *app, matrices *m) {
    double *all[] = {m->a, m->b, m->c, m->own_a, m->own_c};
    for (int i = 0; i < 5; i++) {
        application_free(app, all[i]);
    }
    free(m->speeds);
    free(m->counts);
    free(m->displacements);
}

static void run(application *app, matrices *m) {
    int own = m->counts[app->rank];
    double operations = 2.0 * own * m->size;
    application_enter(app);
    MPI_Scatterv(m->a, m->counts, m->displacements, MPI_DOUBLE, m->own_a, own, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(m->b, m->size * m->size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    application_leave(app);
    if (app->rate > 0) {
        application_model(app, operations, m->speeds[app->rank]);
    } else {
        application_compute_begin(app);
        multiply(m->own_a, m->b, m->own_c, own / m->size, m->size);
        application_compute_end(app, operations);
    }
    application_enter(app);
    MPI_Gatherv(m->own_c, own, MPI_DOUBLE, m->c, m->counts, m->displacements, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    application_leave(app);
}

/* The three collectives without data, whose first calls may make communicators. */
static void warm_up(const application *app, matrices *m) {
    int *none = calloc((size_t)app->procs, sizeof *none);
    MPI_Scatterv(m->a, none, none, MPI_DOUBLE, m->own_a, 0, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Bcast(m->b, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gatherv(m->own_c, 0, MPI_DOUBLE, m->c, none, none, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(none);
}

/* Whether the master's C is that of a serial multiplication, and its weighted sum. Entries are whole numbers. */
static int check(const matrices *m, double *sum) {
    int size = m->size, same = 1;
    double *serial = calloc((size_t)size * (size_t)size, sizeof *serial);
    multiply(m->a, m->b, serial, size, size);
    for (int i = 0; i < size * size; i++) {
        same = same && m->c[i] == serial[i];
        *sum += m->c[i] * (1 + i % 7);
    }
    free(serial);
    return same;
}

static void list_calls(const application *app, size_t bytes, long repetitions) {
    size_t share = bytes / (size_t)app->procs;
    application_list_call(app, "scatterv", share, repetitions);
    application_list_call(app, "bcast", bytes, repetitions);
    application_list_call(app, "gatherv", share, repetitions);
}

int main(int argc, char **argv) {
    application app = {.name = "matmul"};
    long size = 96, repetitions = 1, fastest = 1;
    const program_option options[] = {{"--size", OPTION_LONG, &size, 1, 11585, NULL},
                                      {"--repetitions", OPTION_LONG, &repetitions, 1, 1 << 30, NULL},
                                      {"--fastest", OPTION_LONG, &fastest, 0, 1000, NULL},
                                      APPLICATION_OPTIONS(app)};
    application_start(&app, &argc, &argv, options);
    double sum = 0;
    int correct = 1;
    if (app.lists_calls) {
        list_calls(&app, (size_t)size * (size_t)size * sizeof(double), repetitions);
    } else {
        matrices m = make(&app, (int)size, fastest);
        if (app.rate > 0) {
            warm_up(&app, &m);
        }
        application_begin(&app);
        for (long i = 0; i < repetitions; i++) {
            run(&app, &m);
        }
        application_end(&app);
        correct = app.rate > 0 || app.rank != 0 || check(&m, &sum);
        drop(&app, &m);
    }
    return application_finish(&app, sum, correct);
}
