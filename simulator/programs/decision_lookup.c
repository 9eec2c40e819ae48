/* The nanoseconds that a look-up takes in a decision table, for benchmarks/decision_lookup.py.
 *
 *     decision_lookup COLLECTIVES PROCS SIZES
 *
 * Prints one JSON object: for random queries, the median over blocks of the nanoseconds of a look-up by size in the row
 * that is cached with a communicator ("row"), and of one in the whole table ("table"). The time of a loop over the same
 * queries without any look-up is subtracted. */
#include "interpose/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { QUERIES = 1 << 14, BLOCKS = 101 };

typedef struct {
    uint64_t procs, bytes;
    int collective;
} query;

typedef uint64_t looker(const decision_table *table, const decision_row *row, query asked);

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t look_nowhere(const decision_table *table, const decision_row *row, query asked) {
    (void)table;
    (void)row;
    return asked.bytes + asked.procs + (uint64_t)asked.collective;
}

static uint64_t look_in_row(const decision_table *table, const decision_row *row, query asked) {
    (void)table;
    const decision_choice *choice = decision_row_choice(row, asked.bytes);
    return choice == NULL ? 0 : (uint64_t)choice->algorithm;
}

static uint64_t look_in_table(const decision_table *table, const decision_row *row, query asked) {
    (void)row;
    return look_in_row(NULL, decision_table_row(table, asked.collective, asked.procs, 1), asked);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Each query depends on the result of the one before, like the calls in a program. */
static double nanoseconds(looker *look, const decision_table *table, const decision_row *row, const query *queries) {
    double blocks[BLOCKS];
    volatile uint64_t sink;
    for (int block = 0; block < BLOCKS; block++) {
        uint64_t sum = 0;
        double start = now();
        for (int i = 0; i < QUERIES; i++) {
            sum += look(table, row, queries[(uint64_t)i ^ (sum & 1)]);
        }
        blocks[block] = (now() - start) / QUERIES;
        sink = sum;
    }
    (void)sink;
    qsort(blocks, BLOCKS, sizeof *blocks, compare);
    return blocks[BLOCKS / 2];
}

/* Sizes from 1 byte to 1 GiB and process counts from 2 on, both spread evenly over their logarithm. */
static uint64_t spread(int index, int count, int bits) {
    int steps = index * bits, whole = steps / count;
    return ((uint64_t)1 << whole) + (((uint64_t)1 << whole) * (uint64_t)(steps % count)) / (uint64_t)count;
}

int main(int argc, char **argv) {
    int collectives = argc == 4 ? atoi(argv[1]) : 0, procs = argc == 4 ? atoi(argv[2]) : 0;
    int sizes = argc == 4 ? atoi(argv[3]) : 0;
    if (collectives < 1 || procs < 1 || sizes < 1) {
        fprintf(stderr, "usage: decision_lookup COLLECTIVES PROCS SIZES\n");
        return 2;
    }
    size_t count = 0;
    decision_rule *rules = malloc((size_t)collectives * (size_t)procs * (size_t)sizes * sizeof *rules);
    query *queries = malloc(QUERIES * sizeof *queries);
    if (rules == NULL || queries == NULL) {
        return 1;
    }
    for (int c = 0; c < collectives; c++) {
        for (int p = 0; p < procs; p++) {
            for (int m = 0; m < sizes; m++) {
                rules[count++] =
                    (decision_rule){c, spread(p, procs, 15), 1, spread(m, sizes, 30), {.algorithm = m % 7}};
            }
        }
    }
    decision_table *table = decision_table_make(rules, count, collectives);
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < QUERIES; i++) {
        uint64_t bits = next_random(&state);
        queries[i] = (query){.procs = 1 + (bits >> 40) % 32768,
                             .bytes = next_random(&state) >> (34 + bits % 30),
                             .collective = (int)((bits >> 8) % (uint64_t)collectives)};
    }
    const decision_row *row = decision_table_row(table, 0, 100, 1);
    double nothing = nanoseconds(look_nowhere, table, row, queries);
    printf("{\"rules\": %zu, \"row\": %.2f, \"table\": %.2f}\n", count,
           nanoseconds(look_in_row, table, row, queries) - nothing,
           nanoseconds(look_in_table, table, row, queries) - nothing);
    decision_table_free(table);
    free(queries);
    free(rules);
    return 0;
}
