/* Rules of libcollwise, drawn from a seed: for each collective, number of processes and of processes per node, and for
 * ranges of message sizes where the rules know sizes. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCS = 16, NODE_ROWS = 2, SIZE_ROWS = 3 };
static const size_t first_bytes[SIZE_ROWS] = {0, 200, 10000};

/* Long messages are not cut into thousands of parts. */
static const size_t part_sizes[SIZE_ROWS][4] = {{0, 1, 7, 100}, {0, 100, 1000, 8192}, {0, 4097, 8192, 65536}};
static const size_t limits[SIZE_ROWS][4] = {{0, 1, 28, 4036}, {0, 100, 4035, 8072}, {0, 8192, 16144, 200000}};
enum { MAX_COUNT = 8, MIN_RADIX = 2, FORMS_OF_RULES = COLLWISE_WITHIN_ONE_SIDED + 1 };

/* Whether all processes know the message bytes, so that these choose among rules. The mean of allgatherv's blocks and
 * the sum of reduce_scatter's are left out. */
static bool has_sizes(collwise_collective kind) {
    return kind != COLLWISE_GATHERV && kind != COLLWISE_SCATTERV && kind != COLLWISE_ALLGATHERV &&
           kind != COLLWISE_ALLTOALLV && kind != COLLWISE_BARRIER && kind != COLLWISE_REDUCE_SCATTER;
}

static bool is_wanted(const verify_sequence_options *options, const collwise_algorithm *algorithm,
                      collwise_collective kind) {
    return algorithm->kind == kind &&
           (options->collective == NULL || strcmp(options->collective, algorithm->collective) == 0) &&
           (options->algorithm == NULL || strcmp(options->algorithm, algorithm->name) == 0);
}

/* The algorithm of this number among those of a collective; NULL, with their number in *count, behind the last. */
static const collwise_algorithm *algorithm_at(const verify_sequence_options *options, collwise_collective kind,
                                              unsigned number, unsigned *count) {
    *count = 0;
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        if (is_wanted(options, each, kind) && (*count)++ == number) {
            return each;
        }
    }
    return NULL;
}

static verify_rule rule_at(const verify_sequence_options *options, collwise_collective kind, int procs, int node_row,
                           int size_row) {
    uint64_t place =
        (uint64_t)(((int)kind * MAX_PROCS + procs) * NODE_ROWS + node_row) * SIZE_ROWS + (uint64_t)size_row;
    verify_draws draws = verify_draws_of(options->seed, VERIFY_OF_RULES, place);
    unsigned count, unused;
    algorithm_at(options, kind, ~0U, &count);
    if (count == 0 || verify_draw(&draws, 8) == 0) {
        return (verify_rule){0};
    }
    const collwise_algorithm *one = algorithm_at(options, kind, verify_draw(&draws, count), &unused);
    const collwise_algorithm *other = algorithm_at(options, kind, verify_draw(&draws, count), &unused);
    /* Of two the one that may use memory of a node: there, calls in a row may disturb one another. */
    verify_rule rule = {.algorithm = verify_has_within(other) ? other : one};
    const char *count_name = rule.algorithm->count_parameter;
    rule.with.part_bytes = part_sizes[size_row][verify_draw(&draws, 4)];
    rule.with.limit_bytes = limits[size_row][verify_draw(&draws, 4)];
    if (verify_has_within(rule.algorithm)) {
        rule.with.within = (int)verify_draw(&draws, FORMS_OF_RULES);
    } else if (count_name != NULL) {
        int least = strcmp(count_name, "radix") == 0 ? MIN_RADIX : 1;
        rule.with.count = least + (int)verify_draw(&draws, MAX_COUNT);
    }
    return rule;
}

verify_rule verify_rule_for(const verify_sequence_options *options, collwise_collective kind, int procs, int per_node,
                            size_t message_bytes) {
    int size_row = has_sizes(kind) ? SIZE_ROWS - 1 : 0;
    while (size_row > 0 && message_bytes < first_bytes[size_row]) {
        size_row--;
    }
    if (procs < 2) {
        return (verify_rule){0};
    }
    return rule_at(options, kind, procs < MAX_PROCS ? procs : MAX_PROCS, per_node < NODE_ROWS ? 0 : 1, size_row);
}

static void write_rule(FILE *file, collwise_collective kind, int procs, int node_row, size_t bytes, verify_rule rule) {
    const collwise_algorithm *algorithm = rule.algorithm;
    fprintf(file, "%s %d %d %zu %s", collwise_collective_names[kind], procs, node_row + 1, bytes,
            algorithm == NULL ? "default" : algorithm->name);
    if (algorithm != NULL && algorithm->part_parameter != NULL) {
        fprintf(file, " %s=%zu", algorithm->part_parameter, rule.with.part_bytes);
    }
    if (algorithm != NULL && algorithm->limit_parameter != NULL) {
        fprintf(file, " %s=%zu", algorithm->limit_parameter, rule.with.limit_bytes);
    }
    if (algorithm != NULL && algorithm->count_parameter != NULL) {
        fprintf(file, " %s=%d", algorithm->count_parameter, rule.with.count);
    }
    fputc('\n', file);
}

void verify_write_rules(const verify_sequence_options *options, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror("verify: rules");
        exit(2);
    }
    for (collwise_collective kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        for (int procs = 2; procs <= MAX_PROCS; procs++) {
            for (int node_row = 0; node_row < NODE_ROWS; node_row++) {
                for (int size_row = 0; size_row < (has_sizes(kind) ? SIZE_ROWS : 1); size_row++) {
                    verify_rule rule = rule_at(options, kind, procs, node_row, size_row);
                    write_rule(file, kind, procs, node_row, first_bytes[size_row], rule);
                }
            }
        }
    }
    fclose(file);
}
