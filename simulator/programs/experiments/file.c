#include "experiments.h"

#include "internal.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *what, const char *detail) {
    fprintf(stderr, "experiments: %s %s\n", what, detail);
    abort_program();
}

static experiment_kind kind_of(const char *name) {
    static const char *const names[KINDS] = {
        "roundtrip",   "send",          "isend", "receive", "unexpected_receive", "saturation", "prtt",
        "sendrecv",    "eager_limit",   "clock", "reduce",  "one_to_two",         "scatter",    "gather",
        "chain_bcast", "linear_barrier"};
    experiment_kind kind = 0;
    while (kind < KINDS && strcmp(names[kind], name) != 0) {
        kind++;
    }
    return kind;
}

int is_collective(const experiment *one) { return one->kind >= SCATTER; }

/* Several pairs have to agree on how often they repeat. */
static int has_valid_procs(const experiment *one, int world_procs) {
    if (one->procs < 1 || one->procs > world_procs || is_collective(one)) {
        return is_collective(one) && one->procs >= 1 && one->procs <= world_procs;
    }
    if (one->kind == ONE_TO_TWO) {
        return one->procs == 3;
    }
    return one->procs % 2 == 0 && (one->procs == 2 || one->repetitions > 0);
}

static experiment parse_experiment(const char *line, int world_procs) {
    experiment one = {0};
    char kind[32];
    int used = 0;
    int fields = sscanf(line, "%ld %ld %31s %d %d %d %lf %d %d%n", &one.id, &one.round, kind, &one.message_bytes,
                        &one.reply_bytes, &one.count, &one.delay_seconds, &one.repetitions, &one.procs, &used);
    one.kind = fields == 9 ? kind_of(kind) : KINDS;
    if (one.kind == KINDS || one.message_bytes < 0 || one.reply_bytes < 0 || one.count < 1 || one.repetitions < 0 ||
        !has_valid_procs(&one, world_procs)) {
        fail("malformed experiment:", line);
    }
    int named = is_collective(&one) ? 1 : one.procs;
    one.ranks = collwise_allocate((size_t)named * sizeof *one.ranks, MPI_COMM_WORLD);
    const char *rest = line + used;
    for (int i = 0; i < named; i++, rest += used) {
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
    experiment_file file = {collwise_allocate((size_t)room * sizeof *file.list, MPI_COMM_WORLD), 0};
    char *rest; /* strtok's state would be in the C library, which simulated processes share */
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        file.list[file.count++] = parse_experiment(line, world_procs);
    }
    return file;
}

void experiment_file_free(experiment_file *file) {
    for (int i = 0; i < file->count; i++) {
        free(file->list[i].ranks);
    }
    free(file->list);
}
