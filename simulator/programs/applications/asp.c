/* All pairs' shortest paths by Floyd and Warshall's algorithm in parallel. The rows of the matrix of distances are
 * dealt to the processes in turn. In iteration k the owner of row k broadcasts it, and each process replaces its
 * distances from i to j by those over k if these are shorter.
 *
 *     asp [--size N] [--rows R] [--iterations K] [--rate UPDATES_PER_SECOND]
 *
 * The matrix has R rows of N numbers of 4 bytes each, by default N rows. Only a square one has a result that is
 * checked; with --rate there may be other numbers of rows, so that a process has R / P of them. Of the R iterations the
 * first K are timed, by default all, after W untimed ones. */
#include "application.h"

#include <stdlib.h>
#include <string.h>

enum { NO_EDGE = 1000000000, LONGEST_EDGE = 1000, EDGES_IN_TEN = 4 };

static int weight(long from, long to) {
    if (from == to) {
        return 0;
    }
    unsigned drawn = application_noise((unsigned)from, (unsigned)to, 10 * LONGEST_EDGE);
    return drawn % 10 < EDGES_IN_TEN ? 1 + (int)(drawn / 10) : NO_EDGE;
}

static void shorten(int *row, const int *over, int k, long size) {
    int first = row[k];
    for (long j = 0; j < size; j++) {
        int through = first + over[j];
        row[j] = through < row[j] ? through : row[j];
    }
}

/* The process's rows: rank, rank + P, rank + 2 P, ... */
static long rows_of(long rows, int procs, int rank) { return rows / procs + (rank < rows % procs); }

static void solve(application *app, int *own, long size, long iterations) {
    int *row = application_allocate(app, (size_t)size * sizeof *row);
    long held = rows_of(size, app->procs, app->rank);
    application_begin(app);
    for (long k = 0; k < iterations; k++) {
        int owner = (int)(k % app->procs);
        if (app->rank == owner) {
            memcpy(row, own + k / app->procs * size, (size_t)size * sizeof *row);
        }
        application_enter(app);
        MPI_Bcast(row, (int)size, MPI_INT, owner, MPI_COMM_WORLD);
        application_leave(app);
        application_compute_begin(app);
        for (long i = 0; i < held; i++) {
            shorten(own + i * size, row, (int)k, size);
        }
        application_compute_end(app, (double)held * (double)size);
    }
    application_end(app);
    application_free(app, row);
}

/* Whether the rows of all processes are those of a serial computation of all, and on the first process their sum. */
static int check(const application *app, const int *own, long size, long iterations, double *sum) {
    long most = rows_of(size, app->procs, 0);
    int *all = app->rank == 0 ? malloc((size_t)(most * app->procs * size) * sizeof *all + 1) : NULL;
    int *padded = calloc((size_t)(most * size) + 1, sizeof *padded);
    memcpy(padded, own, (size_t)(rows_of(size, app->procs, app->rank) * size) * sizeof *own);
    MPI_Gather(padded, (int)(most * size), MPI_INT, all, (int)(most * size), MPI_INT, 0, MPI_COMM_WORLD);
    free(padded);
    if (app->rank != 0) {
        return 1;
    }
    int *serial = malloc((size_t)(size * size) * sizeof *serial);
    for (long i = 0; i < size * size; i++) {
        serial[i] = weight(i / size, i % size);
    }
    for (long k = 0; k < iterations; k++) {
        for (long i = 0; i < size; i++) {
            shorten(serial + i * size, serial + k * size, (int)k, size);
        }
    }
    int same = 1;
    for (long i = 0; i < size; i++) {
        const int *row = all + ((i % app->procs) * most + i / app->procs) * size;
        for (long j = 0; j < size; j++) {
            same = same && row[j] == serial[i * size + j];
            *sum += row[j] == NO_EDGE ? 0 : row[j];
        }
    }
    free(serial);
    free(all);
    return same;
}

static void model(application *app, long size, long rows, long iterations) {
    void *row = application_allocate(app, (size_t)size * sizeof(int));
    double updates = (double)rows_of(rows, app->procs, app->rank) * (double)size;
    for (int root = 0; root < app->procs && root < iterations; root++) {
        MPI_Bcast(row, 1, MPI_INT, root, MPI_COMM_WORLD);
    }
    application_begin(app);
    for (long k = 0; k < iterations; k++) {
        application_enter(app);
        MPI_Bcast(row, (int)size, MPI_INT, (int)(k % app->procs), MPI_COMM_WORLD);
        application_leave(app);
        application_model(app, updates, 1);
    }
    application_end(app);
    application_free(app, row);
}

int main(int argc, char **argv) {
    application app = {.name = "asp"};
    long size = 256, rows = 0, iterations = 0;
    const program_option options[] = {{"--size", OPTION_LONG, &size, 1, 1 << 28, NULL},
                                      {"--rows", OPTION_LONG, &rows, 0, 1L << 40, NULL},
                                      {"--iterations", OPTION_LONG, &iterations, 0, 1L << 40, NULL},
                                      APPLICATION_OPTIONS(app)};
    application_start(&app, &argc, &argv, options);
    rows = rows > 0 ? rows : size;
    iterations = iterations > 0 && iterations < rows ? iterations : rows;
    double sum = 0;
    int correct = 1;
    if (app.lists_calls) {
        application_list_call(&app, "bcast", (size_t)size * sizeof(int), iterations);
    } else if (app.rate > 0) {
        model(&app, size, rows, iterations);
    } else {
        long held = rows_of(size, app.procs, app.rank);
        int *own = application_allocate(&app, (size_t)(held * size) * sizeof *own);
        for (long i = 0; i < held * size; i++) {
            own[i] = weight(app.rank + i / size * app.procs, i % size);
        }
        iterations = iterations < size ? iterations : size;
        solve(&app, own, size, iterations);
        correct = check(&app, own, size, iterations, &sum);
        application_free(&app, own);
    }
    return application_finish(&app, sum, correct);
}
