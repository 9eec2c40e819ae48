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
#include "options.h"
#include "workload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST (1L << 30)

typedef struct {
    int wanted[COLLWISE_COLLECTIVES];
    long least, most, iterations, warmup;
    int once; /* there is a barrier once before all calls, not before each */
} options;

static void want(options *chosen, const char *names, work_line *read) {
    work_line line = program_work_line_of(names);
    do {
        char name[32];
        program_work_word(&line, "a name", name, sizeof name);
        int kind = (int)program_workload_kind(name), all = strcmp(name, "all") == 0;
        if (kind == COLLWISE_COLLECTIVES && !all) {
            program_work_refuse(read, "'%s' is not a collective", name);
        }
        for (int i = 0; i < COLLWISE_COLLECTIVES; i++) {
            chosen->wanted[i] |= all || i == kind;
        }
    } while (!program_work_is_over(&line));
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

static void read_sizes(options *chosen, const char *text, work_line *read) {
    const char *rest;
    if (!read_size(text, ':', &chosen->least, &rest) || !read_size(rest, '\0', &chosen->most, &rest) ||
        chosen->most < chosen->least) {
        program_work_refuse(read, "--sizes is not a smaller and a larger size of at most 1GiB, such as 8:64KiB");
    }
}

static options read_options(char **words) {
    options chosen = {.iterations = 20, .warmup = 2};
    const char *collectives = "all", *sizes = "1:65536";
    const program_option all[] = {
        {.name = "--collectives", OPTION_TEXT, &collectives, .words = "bcast,allreduce,...|all"},
        {.name = "--sizes", OPTION_TEXT, &sizes, .words = "MIN:MAX"},
        {"--iterations", OPTION_LONG, &chosen.iterations, 1, INT_MAX, NULL},
        {"--warmup", OPTION_LONG, &chosen.warmup, 0, INT_MAX, NULL},
        {.name = "--barriers", OPTION_CHOICE, &chosen.once, .words = "each|once"},
        {0}};
    work_line read = program_read_options(all, words);
    want(&chosen, collectives, &read);
    read_sizes(&chosen, sizes, &read);
    if (!program_work_is_right(&read)) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) {
            program_print_usage("latency", all, &read);
        }
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
        if (!chosen->once || i == 0 || i == chosen->warmup) {
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
    for (long bytes = chosen->least; bytes <= chosen->most; bytes = bytes == 0 ? 1 : 2 * bytes) {
        measure(kind, (size_t)bytes, chosen, procs, rank);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    options chosen = read_options(argv + 1);
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        if (chosen.wanted[kind]) {
            measure_sizes((collwise_collective)kind, &chosen);
        }
    }
    MPI_Finalize();
    return 0;
}
