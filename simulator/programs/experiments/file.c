#include "experiments.h"

#include "internal.h"
#include "work_line.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int program_is_collective(const experiment *one) { return one->kind >= SCATTER; }

/* Several pairs have to agree on how often they repeat. */
static const char *objection(const experiment *one) {
    if (one->kind == KINDS) {
        return "kind is unknown";
    }
    if (program_is_collective(one)) {
        return NULL;
    }
    if (one->kind == ONE_TO_TWO ? one->procs != 3 : one->procs % 2 != 0) {
        return "procs is not 3 for one_to_two, and not even for pairs";
    }
    return one->procs > 3 && one->repetitions == 0 ? "several pairs need repetitions" : NULL;
}

/* The ranks that the line names: those of all processes, each once, or the root of a collective kind. */
static int *parse_ranks(work_line *line, const experiment *one, int world_procs) {
    int named = program_is_collective(one) ? 1 : one->procs;
    int *ranks = collwise_allocate((size_t)named * sizeof *ranks, MPI_COMM_WORLD);
    char *taken = calloc((size_t)world_procs, 1);
    for (int i = 0; i < named; i++) {
        ranks[i] =
            (int)program_work_integer(line, "a rank", 0, (program_is_collective(one) ? one->procs : world_procs) - 1);
        if (taken != NULL && taken[ranks[i]]++) {
            program_work_refuse(line, "a rank is named twice");
        }
    }
    free(taken);
    return ranks;
}

/* Long messages in great numbers would take all memory. */
enum { MAX_BYTES = 1 << 30, MAX_MESSAGES = 100000, MAX_REPETITIONS = 1 << 24, MAX_SECONDS = 1000000 };

static experiment parse_experiment(work_line *line, int world_procs) {
    experiment one = {0};
    char kind[32];
    one.id = program_work_integer(line, "id", 0, LONG_MAX);
    one.id = program_work_is_right(line) ? one.id : -1;
    one.round = program_work_integer(line, "round", 0, LONG_MAX);
    program_work_word(line, "kind", kind, sizeof kind);
    one.kind = kind_of(kind);
    one.message_bytes = (int)program_work_integer(line, "message_bytes", 0, MAX_BYTES);
    one.reply_bytes = (int)program_work_integer(line, "reply_bytes", 0, MAX_BYTES);
    one.count = (int)program_work_integer(line, "count", 1, MAX_MESSAGES);
    one.delay_seconds = program_work_number(line, "delay_seconds", 0, MAX_SECONDS);
    one.repetitions = (int)program_work_integer(line, "repetitions", 0, MAX_REPETITIONS);
    one.procs = (int)program_work_integer(line, "procs", 1, world_procs);
    const char *wrong = program_work_is_right(line) ? objection(&one) : NULL;
    if (wrong != NULL) {
        program_work_refuse(line, "%s", wrong);
    }
    one.ranks = program_work_is_right(line) ? parse_ranks(line, &one, world_procs) : NULL;
    program_work_end(line);
    return one;
}

experiment_file program_experiments_parse(char *text) {
    int world_procs, rank, room = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (const char *c = text; *c != '\0'; c++) {
        room += *c == '\n';
    }
    experiment_file file = {collwise_allocate((size_t)room * sizeof *file.list, MPI_COMM_WORLD), 0};
    for (work_line line; program_work_next(&text, &line);) {
        experiment one = parse_experiment(&line, world_procs);
        if (program_work_is_right(&line)) {
            file.list[file.count++] = one;
        } else {
            free(one.ranks);
            if (rank == 0) {
                program_work_print_refusal(stdout, one.id, &line);
            }
        }
    }
    return file;
}

void program_experiments_free(experiment_file *file) {
    for (int i = 0; i < file->count; i++) {
        free(file->list[i].ranks);
    }
    free(file->list);
}
