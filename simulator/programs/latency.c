/* Latency of MPI's own collectives by message size, as a user's program would measure it: nothing here depends on
 * collwise's algorithms.
 *
 *     latency [--collectives bcast,allreduce,...|all] [--sizes MIN:MAX] [--iterations N] [--warmup N]
 *             [--barriers each|once]
 *
 * Sizes (8192, 8KiB) are as the catalogue defines them for each collective, doubled from MIN to MAX. Printed are the
 * average, the minimum and the maximum over the processes of each one's mean over the iterations. A barrier separates
 * each call from the one before, or stands once before all of them: then calls overlap, as in the Intel MPI
 * Benchmarks. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST (1L << 30)

typedef struct {
    int wanted[COLLWISE_COLLECTIVES];
    size_t least, most;
    long iterations, warmup;
    int separated; /* by a barrier before each call */
} options;

static int want(options *chosen, const char *names) {
    while (*names != '\0') {
        size_t length = strcspn(names, ",");
        int found = 0;
        for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
            const char *name = collwise_collective_names[kind];
            if (strncmp(names, "all", length) == 0 && length == strlen("all")) {
                found = chosen->wanted[kind] = 1;
            } else if (strlen(name) == length && strncmp(names, name, length) == 0) {
                found = chosen->wanted[kind] = 1;
            }
        }
        if (!found) {
            return 0;
        }
        names += length + (names[length] == ',');
    }
    return 1;
}

static int read_count(const char *text, long low, long *value) {
    char *stop;
    *value = strtol(text, &stop, 10);
    return stop != text && *stop == '\0' && *value >= low;
}

/* The forms of the command line: 8192, 8KiB, 1M, 64KB; in `text` as far as `end`. */
static int read_size(const char *text, char end, long *value, const char **rest) {
    static const struct {
        const char *name;
        long bytes;
    } units[] = {{"", 1},           {"B", 1},        {"K", 1L << 10},   {"KiB", 1L << 10}, {"M", 1L << 20},
                 {"MiB", 1L << 20}, {"G", 1L << 30}, {"GiB", 1L << 30}, {"KB", 1000},      {"MB", 1000000}};
    char *stop;
    long number = strtol(text, &stop, 10);
    const char *past = strchr(stop, end);
    if (stop == text || past == NULL || number < 0 || number > MOST) {
        return 0;
    }
    *rest = past + (end != '\0');
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t length = strlen(units[i].name);
        if (length == (size_t)(past - stop) && strncasecmp(stop, units[i].name, length) == 0) {
            *value = number * units[i].bytes;
            return *value <= MOST;
        }
    }
    return 0;
}

static int read_sizes(options *chosen, const char *text) {
    long least, most;
    const char *rest;
    if (!read_size(text, ':', &least, &rest) || !read_size(rest, '\0', &most, &rest) || most < least) {
        return 0;
    }
    chosen->least = (size_t)least;
    chosen->most = (size_t)most;
    return 1;
}

static int read_option(options *chosen, const char *name, const char *value) {
    if (strcmp(name, "--collectives") == 0) {
        memset(chosen->wanted, 0, sizeof chosen->wanted);
        return want(chosen, value);
    }
    if (strcmp(name, "--sizes") == 0) {
        return read_sizes(chosen, value);
    }
    if (strcmp(name, "--iterations") == 0) {
        return read_count(value, 1, &chosen->iterations);
    }
    if (strcmp(name, "--barriers") == 0) {
        chosen->separated = strcmp(value, "each") == 0;
        return chosen->separated || strcmp(value, "once") == 0;
    }
    return strcmp(name, "--warmup") == 0 && read_count(value, 0, &chosen->warmup);
}

static options read_options(int argc, char **argv) {
    options chosen = {.least = 1, .most = 65536, .iterations = 20, .warmup = 2, .separated = 1};
    int fine = want(&chosen, "all") && argc % 2 == 1;
    for (int i = 1; fine && i + 1 < argc; i += 2) {
        fine = read_option(&chosen, argv[i], argv[i + 1]);
    }
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!fine && rank == 0) {
        fprintf(stderr, "usage: latency [--collectives bcast,allreduce,...|all] [--sizes MIN:MAX] [--iterations N] "
                        "[--warmup N] [--barriers each|once]\n");
    }
    if (!fine) {
        MPI_Finalize();
        exit(2);
    }
    return chosen;
}

static void *allocate(size_t bytes) { return calloc(bytes, 1); }

/* This process's mean seconds of one call. */
static double mean_seconds(const workload *load, const options *chosen) {
    double total = 0;
    for (long i = 0; i < chosen->warmup + chosen->iterations; i++) {
        if (chosen->separated || i == 0 || i == chosen->warmup) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        double start = MPI_Wtime();
        program_workload_call_mpi(load->kind, &load->call, NULL);
        total += i < chosen->warmup ? 0 : MPI_Wtime() - start;
    }
    return total / (double)chosen->iterations;
}

static void measure(collwise_collective kind, size_t bytes, const options *chosen, int procs, int rank) {
    workload load;
    if (!program_workload_make(&load, kind, bytes, 0, MPI_COMM_WORLD, (workload_memory){allocate, free})) {
        fprintf(stderr, "latency: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double mean = mean_seconds(&load, chosen), least, most, sum;
    MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mean, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%-12zu %16.2f %16.2f %16.2f\n", bytes, 1e6 * sum / procs, 1e6 * least, 1e6 * most);
        fflush(stdout);
    }
    program_workload_free(&load);
}

static void measure_sizes(collwise_collective kind, const options *chosen) {
    int procs, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("# %s, %d processes\n%-12s %16s %16s %16s\n", collwise_collective_names[kind], procs, "# bytes",
               "average (us)", "minimum (us)", "maximum (us)");
    }
    if (kind == COLLWISE_BARRIER) {
        measure(kind, 0, chosen, procs, rank);
        return;
    }
    for (size_t bytes = chosen->least; bytes <= chosen->most; bytes = bytes == 0 ? 1 : 2 * bytes) {
        measure(kind, bytes, chosen, procs, rank);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    options chosen = read_options(argc, argv);
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        if (chosen.wanted[kind]) {
            measure_sizes((collwise_collective)kind, &chosen);
        }
    }
    MPI_Finalize();
    return 0;
}
