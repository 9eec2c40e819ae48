#include "experiments.h"

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static experiment_kind kind_of(const char *name) {
    static const char *const names[KINDS] = {"roundtrip",  "send",    "receive", "saturation",  "prtt",
                                             "one_to_two", "scatter", "gather",  "chain_bcast", "linear_barrier"};
    experiment_kind kind = 0;
    while (kind < KINDS && strcmp(names[kind], name) != 0) {
        kind++;
    }
    return kind;
}

int is_collective(const experiment *one) { return one->kind >= SCATTER; }

int role_of(const experiment *one, int rank) {
    if (is_collective(one)) {
        return rank == one->ranks[0] ? 0 : rank < one->procs ? 1 : -1;
    }
    for (int i = 0; i < one->procs; i++) {
        if (one->ranks[i] == rank) {
            return i;
        }
    }
    return -1;
}

static precision parse_precision(const char *line) {
    precision wanted = {0};
    int used = 0;
    if (sscanf(line, "%d %d %lf%n", &wanted.least, &wanted.most, &wanted.relative_error, &used) != 3 ||
        wanted.least < 1 || wanted.most < wanted.least) {
        fail("malformed precision:", line);
    }
    wanted.quantiles = collwise_allocate(((size_t)wanted.most + 1) * sizeof(double), MPI_COMM_WORLD);
    char *rest = (char *)line + used;
    for (int n = 2; n <= wanted.most; n++) {
        char *before = rest;
        wanted.quantiles[n] = strtod(before, &rest);
        if (rest == before) {
            fail("fewer quantiles than repetitions:", line);
        }
    }
    return wanted;
}

static experiment parse_experiment(const char *line, int world_procs) {
    experiment one = {0};
    char kind[32];
    int used = 0;
    int fields = sscanf(line, "%ld %ld %31s %d %d %d %lf %d%n", &one.id, &one.round, kind, &one.message_bytes,
                        &one.reply_bytes, &one.count, &one.delay_seconds, &one.procs, &used);
    one.kind = fields == 8 ? kind_of(kind) : KINDS;
    if (one.kind == KINDS || one.message_bytes < 0 || one.reply_bytes < 0 || one.count < 1 || one.procs > world_procs ||
        one.procs < (is_collective(&one) ? 1 : 2) || (!is_collective(&one) && one.procs > MAX_NAMED)) {
        fail("malformed experiment:", line);
    }
    const char *rest = line + used;
    for (int i = 0; i < (is_collective(&one) ? 1 : one.procs); i++, rest += used) {
        if (sscanf(rest, "%d%n", &one.ranks[i], &used) != 1 || one.ranks[i] < 0 || one.ranks[i] >= world_procs) {
            fail("malformed experiment:", line);
        }
    }
    return one;
}

experiment_file experiment_file_parse(char *text) {
    int world_procs, room = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    for (const char *c = text; *c != '\0'; c++) {
        room += *c == '\n';
    }
    char *rest; /* strtok's state would be in the C library, which simulated processes share */
    char *line = strtok_r(text, "\n", &rest);
    experiment_file file = {.wanted = parse_precision(line == NULL ? "" : line)};
    file.list = collwise_allocate((size_t)room * sizeof *file.list, MPI_COMM_WORLD);
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        file.list[file.count++] = parse_experiment(line, world_procs);
    }
    return file;
}

void experiment_file_free(experiment_file *file) {
    free(file->list);
    free(file->wanted.quantiles);
}
