/* Look-ups in random tables against a search of all rules. */
#include "interpose/decision.h"

#include <stdio.h>
#include <stdlib.h>

enum { TABLES = 300, QUERIES = 300, MAX_RULES = 400, COLLECTIVES = 3 };

/* xorshift: the same numbers everywhere. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Small values, where neighbours and equal keys are frequent, and values of any bit length. */
static uint64_t random_value(uint64_t *state, uint64_t least) {
    uint64_t value = next_random(state);
    return least + (value % 2 == 0 ? (value >> 8) % 6 : (value >> 8) >> (value >> 1) % 56);
}

static uint64_t best(uint64_t found, int any, uint64_t candidate) {
    return !any || candidate > found ? candidate : found;
}

/* The definition: the largest procs not above, of these the largest processes per node, of these the largest size.
 * Of equal rules the last one. NULL if there is none at any step. */
static const decision_choice *search(const decision_rule *rules, size_t count, int collective, uint64_t procs,
                                     uint64_t per_node, uint64_t bytes) {
    uint64_t at_procs = 0, at_node = 0;
    int any = 0;
    for (size_t i = 0; i < count; i++) {
        if (rules[i].collective == collective && rules[i].procs <= procs) {
            at_procs = best(at_procs, any, rules[i].procs);
            any = 1;
        }
    }
    int any_node = 0;
    for (size_t i = 0; any && i < count; i++) {
        if (rules[i].collective == collective && rules[i].procs == at_procs &&
            rules[i].processes_per_node <= per_node) {
            at_node = best(at_node, any_node, rules[i].processes_per_node);
            any_node = 1;
        }
    }
    const decision_rule *found = NULL;
    for (size_t i = 0; any_node && i < count; i++) {
        int fits = rules[i].collective == collective && rules[i].procs == at_procs &&
                   rules[i].processes_per_node == at_node && rules[i].message_bytes <= bytes;
        if (fits && (found == NULL || rules[i].message_bytes >= found->message_bytes)) {
            found = &rules[i];
        }
    }
    return found == NULL ? NULL : &found->choice;
}

static const decision_choice *look_up(const decision_table *table, int collective, uint64_t procs, uint64_t per_node,
                                      uint64_t bytes) {
    const decision_row *row = decision_table_row(table, collective, procs, per_node);
    return row == NULL ? NULL : decision_row_choice(row, bytes);
}

static int same(const decision_choice *a, const decision_choice *b) {
    return a == NULL || b == NULL ? a == b : a->algorithm == b->algorithm;
}

static long check_table(uint64_t *state) {
    decision_rule rules[MAX_RULES];
    size_t count = next_random(state) % (MAX_RULES + 1);
    int long_rows = next_random(state) % 2 == 0;
    for (size_t i = 0; i < count; i++) {
        rules[i] = (decision_rule){.collective = (int)(next_random(state) % COLLECTIVES),
                                   .procs = long_rows ? 1 : random_value(state, 1),
                                   .processes_per_node = long_rows ? 2 : random_value(state, 1),
                                   .message_bytes = random_value(state, 0),
                                   .choice = {.algorithm = (int)i}};
    }
    decision_table *table = decision_table_make(rules, count, COLLECTIVES);
    long failures = table == NULL;
    for (int i = 0; table != NULL && i < QUERIES; i++) {
        int collective = (int)(next_random(state) % COLLECTIVES);
        uint64_t procs = random_value(state, 0), per_node = random_value(state, 0), bytes = random_value(state, 0);
        failures += !same(look_up(table, collective, procs, per_node, bytes),
                          search(rules, count, collective, procs, per_node, bytes));
    }
    decision_table_free(table);
    return failures;
}

/* Whether nodes matter: only where a rule for these processes names more than one process on a node. */
static long check_nodes(void) {
    decision_rule rules[] = {{.procs = 2, .processes_per_node = 1}, {.procs = 8, .processes_per_node = 4}};
    decision_table *table = decision_table_make(rules, 2, 1);
    long failures = decision_table_asks_nodes(table, 0, 1) + decision_table_asks_nodes(table, 0, 7) +
                    !decision_table_asks_nodes(table, 0, 8);
    decision_table_free(table);
    return failures;
}

int main(void) {
    uint64_t state = 88172645463325252u;
    long failures = check_nodes();
    for (int i = 0; i < TABLES; i++) {
        failures += check_table(&state);
    }
    printf("%d tables, %ld failures\n", TABLES, failures);
    return failures != 0;
}
