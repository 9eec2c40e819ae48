/* Decision tables as trees of three levels: processes, processes per node, message sizes. */
#include "decision.h"

#include <stdlib.h>

typedef struct {
    decision_steps per_node;
    decision_row *rows;
} procs_level;

typedef struct {
    decision_steps procs;
    procs_level *levels;
} collective_level;

struct decision_table {
    int collectives;
    collective_level list[];
};

typedef uint64_t key_of(const decision_rule *rule);

static uint64_t procs_of(const decision_rule *rule) { return rule->procs; }
static uint64_t per_node_of(const decision_rule *rule) { return rule->processes_per_node; }
static uint64_t bytes_of(const decision_rule *rule) { return rule->message_bytes; }

static int order(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Sorts pointers into the list of rules. Rules with equal keys keep their order: their addresses are compared last. */
static int compare(const void *left, const void *right) {
    const decision_rule *const a = *(const decision_rule *const *)left, *const b = *(const decision_rule *const *)right;
    int by_collective = order((uint64_t)a->collective, (uint64_t)b->collective);
    int by_procs = order(a->procs, b->procs), by_node = order(a->processes_per_node, b->processes_per_node);
    int by_bytes = order(a->message_bytes, b->message_bytes);
    int by_address = (a > b) - (a < b);
    return by_collective != 0 ? by_collective
           : by_procs != 0    ? by_procs
           : by_node != 0     ? by_node
           : by_bytes != 0    ? by_bytes
                              : by_address;
}

/* Consecutive rules in sorted order. */
typedef struct {
    const decision_rule *const *first;
    size_t count;
} run;

/* The number of rules at the front that share the first one's key. */
static size_t count_alike(run rules, key_of *key) {
    size_t count = 1;
    while (count < rules.count && key(rules.first[count]) == key(rules.first[0])) {
        count++;
    }
    return count;
}

static run skip(run rules, size_t count) { return (run){rules.first + count, rules.count - count}; }

/* Enough slots that few keys share one if their logarithms are evenly spread. */
static int slot_bits_for(uint32_t count) {
    int bits = 0;
    while (bits < 10 && (32u << bits) < count) {
        bits++;
    }
    return bits;
}

static int fill_slots(decision_steps *steps) {
    steps->slot_bits = slot_bits_for(steps->count);
    uint32_t slots = (uint32_t)65 << steps->slot_bits;
    steps->before = malloc((slots + 1) * sizeof *steps->before);
    if (steps->before == NULL) {
        return 0;
    }
    for (uint32_t index = 0, slot = 0; slot <= slots; slot++) {
        while (index < steps->count && decision_slot(steps->keys[index], steps->slot_bits) < slot) {
            index++;
        }
        steps->before[slot] = index;
    }
    return 1;
}

/* Makes one key for each group of rules that share it; returns 0 if memory runs out. */
static int make_steps(decision_steps *steps, run rules, key_of *key) {
    steps->keys = calloc(rules.count + 1, sizeof *steps->keys);
    if (steps->keys == NULL) {
        return 0;
    }
    for (run rest = rules; rest.count > 0; rest = skip(rest, count_alike(rest, key))) {
        steps->keys[steps->count++] = key(rest.first[0]);
    }
    return fill_slots(steps);
}

static void free_steps(decision_steps *steps) {
    free(steps->keys);
    free(steps->before);
}

static int make_row(decision_row *row, run rules) {
    row->choices = malloc((rules.count + 1) * sizeof *row->choices);
    if (row->choices == NULL || !make_steps(&row->sizes, rules, bytes_of)) {
        return 0;
    }
    row->ours_from = UINT64_MAX;
    decision_choice *next = row->choices;
    for (run rest = rules; rest.count > 0;) {
        size_t same = count_alike(rest, bytes_of);
        *next = rest.first[same - 1]->choice;
        if (next->algorithm != DECISION_DEFAULT && row->ours_from == UINT64_MAX) {
            row->ours_from = rest.first[0]->message_bytes;
        }
        next++;
        rest = skip(rest, same);
    }
    return 1;
}

static int make_procs_level(procs_level *level, run rules) {
    level->rows = calloc(rules.count + 1, sizeof *level->rows);
    if (level->rows == NULL || !make_steps(&level->per_node, rules, per_node_of)) {
        return 0;
    }
    decision_row *next = level->rows;
    for (run rest = rules; rest.count > 0;) {
        size_t same = count_alike(rest, per_node_of);
        if (!make_row(next++, (run){rest.first, same})) {
            return 0;
        }
        rest = skip(rest, same);
    }
    return 1;
}

static int make_collective_level(collective_level *level, run rules) {
    level->levels = calloc(rules.count + 1, sizeof *level->levels);
    if (level->levels == NULL || !make_steps(&level->procs, rules, procs_of)) {
        return 0;
    }
    procs_level *next = level->levels;
    for (run rest = rules; rest.count > 0;) {
        size_t same = count_alike(rest, procs_of);
        if (!make_procs_level(next++, (run){rest.first, same})) {
            return 0;
        }
        rest = skip(rest, same);
    }
    return 1;
}

static int make_collectives(decision_table *table, run rules) {
    for (int collective = 0; collective < table->collectives; collective++) {
        size_t own = 0;
        while (own < rules.count && rules.first[own]->collective == collective) {
            own++;
        }
        if (!make_collective_level(&table->list[collective], (run){rules.first, own})) {
            return 0;
        }
        rules = skip(rules, own);
    }
    return 1;
}

decision_table *decision_table_make(const decision_rule *rules, size_t count, int collectives) {
    decision_table *table = calloc(1, sizeof *table + (size_t)collectives * sizeof table->list[0]);
    const decision_rule **sorted = malloc((count + 1) * sizeof *sorted);
    int made = 0;
    if (table != NULL && sorted != NULL) {
        table->collectives = collectives;
        for (size_t i = 0; i < count; i++) {
            sorted[i] = &rules[i];
        }
        qsort(sorted, count, sizeof *sorted, compare);
        made = make_collectives(table, (run){sorted, count});
    }
    free(sorted);
    if (!made) {
        decision_table_free(table);
        return NULL;
    }
    return table;
}

static void free_procs_level(procs_level *level) {
    for (uint32_t i = 0; level->rows != NULL && i < level->per_node.count; i++) {
        free_steps(&level->rows[i].sizes);
        free(level->rows[i].choices);
    }
    free(level->rows);
    free_steps(&level->per_node);
}

static void free_collective_level(collective_level *level) {
    for (uint32_t i = 0; level->levels != NULL && i < level->procs.count; i++) {
        free_procs_level(&level->levels[i]);
    }
    free(level->levels);
    free_steps(&level->procs);
}

void decision_table_free(decision_table *table) {
    for (int i = 0; table != NULL && i < table->collectives; i++) {
        free_collective_level(&table->list[i]);
    }
    free(table);
}

static const procs_level *level_of(const decision_table *table, int collective, uint64_t procs) {
    const collective_level *level = &table->list[collective];
    int64_t index = decision_find(&level->procs, procs);
    return index < 0 ? NULL : &level->levels[index];
}

const decision_row *decision_table_row(const decision_table *table, int collective, uint64_t procs,
                                       uint64_t processes_per_node) {
    const procs_level *level = level_of(table, collective, procs);
    int64_t index = level == NULL ? -1 : decision_find(&level->per_node, processes_per_node);
    return index < 0 ? NULL : &level->rows[index];
}

int decision_table_asks_nodes(const decision_table *table, int collective, uint64_t procs) {
    const procs_level *level = level_of(table, collective, procs);
    return level != NULL && level->per_node.keys[level->per_node.count - 1] > 1;
}

static int row_has(const procs_level *level, uint32_t row) { return level->rows[row].ours_from != UINT64_MAX; }

int decision_table_has(const decision_table *table, int collective) {
    const collective_level *level = &table->list[collective];
    for (uint32_t i = 0; i < level->procs.count; i++) {
        for (uint32_t j = 0; j < level->levels[i].per_node.count; j++) {
            if (row_has(&level->levels[i], j)) {
                return 1;
            }
        }
    }
    return 0;
}
