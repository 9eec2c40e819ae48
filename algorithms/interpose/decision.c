#include "decision.h"

#include <stdlib.h>

/* Three levels of steps: processes, processes per node, message sizes. */
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

/* Equal keys keep their order: the addresses are those of a list of pointers into the rules. */
static int compare(const void *left, const void *right) {
    const decision_rule *const a = *(const decision_rule *const *)left, *const b = *(const decision_rule *const *)right;
    int by_collective = order((uint64_t)a->collective, (uint64_t)b->collective);
    int by_procs = order(a->procs, b->procs), by_node = order(a->processes_per_node, b->processes_per_node);
    int by_bytes = order(a->message_bytes, b->message_bytes);
    int by_place = (a > b) - (a < b);
    return by_collective != 0 ? by_collective
           : by_procs != 0    ? by_procs
           : by_node != 0     ? by_node
           : by_bytes != 0    ? by_bytes
                              : by_place;
}

/* Rules that follow one another in sorted order. */
typedef struct {
    const decision_rule *const *first;
    size_t count;
} run;

/* How many rules at the front share the first one's key. */
static size_t alike(run rules, key_of *key) {
    size_t count = 1;
    while (count < rules.count && key(rules.first[count]) == key(rules.first[0])) {
        count++;
    }
    return count;
}

static run behind(run rules, size_t count) { return (run){rules.first + count, rules.count - count}; }

/* Slots enough that few keys share one, for keys that lie evenly over their logarithm. */
static int fine_bits(uint32_t count) {
    int bits = 0;
    while (bits < 10 && (32u << bits) < count) {
        bits++;
    }
    return bits;
}

static int fill_slots(decision_steps *steps) {
    steps->fine = fine_bits(steps->count);
    uint32_t slots = (uint32_t)65 << steps->fine;
    steps->below = malloc((slots + 1) * sizeof *steps->below);
    if (steps->below == NULL) {
        return 0;
    }
    for (uint32_t place = 0, slot = 0; slot <= slots; slot++) {
        while (place < steps->count && decision_slot(steps->keys[place], steps->fine) < slot) {
            place++;
        }
        steps->below[slot] = place;
    }
    return 1;
}

/* One key for each group of rules that share it; 0 if memory runs out. */
static int make_steps(decision_steps *steps, run rules, key_of *key) {
    steps->keys = calloc(rules.count + 1, sizeof *steps->keys);
    if (steps->keys == NULL) {
        return 0;
    }
    for (run rest = rules; rest.count > 0; rest = behind(rest, alike(rest, key))) {
        steps->keys[steps->count++] = key(rest.first[0]);
    }
    steps->least = steps->keys[0];
    return fill_slots(steps);
}

static void free_steps(decision_steps *steps) {
    free(steps->keys);
    free(steps->below);
}

static int make_row(decision_row *row, run rules) {
    row->choices = malloc((rules.count + 1) * sizeof *row->choices);
    if (row->choices == NULL || !make_steps(&row->sizes, rules, bytes_of)) {
        return 0;
    }
    row->ours_from = UINT64_MAX;
    decision_choice *next = row->choices;
    for (run rest = rules; rest.count > 0;) {
        size_t same = alike(rest, bytes_of);
        *next = rest.first[same - 1]->choice;
        if (next->algorithm != DECISION_DEFAULT && row->ours_from == UINT64_MAX) {
            row->ours_from = rest.first[0]->message_bytes;
        }
        next++;
        rest = behind(rest, same);
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
        size_t same = alike(rest, per_node_of);
        if (!make_row(next++, (run){rest.first, same})) {
            return 0;
        }
        rest = behind(rest, same);
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
        size_t same = alike(rest, procs_of);
        if (!make_procs_level(next++, (run){rest.first, same})) {
            return 0;
        }
        rest = behind(rest, same);
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
        rules = behind(rules, own);
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
    int64_t place = decision_place(&level->procs, procs);
    return place < 0 ? NULL : &level->levels[place];
}

const decision_row *decision_table_row(const decision_table *table, int collective, uint64_t procs,
                                       uint64_t processes_per_node) {
    const procs_level *level = level_of(table, collective, procs);
    int64_t place = level == NULL ? -1 : decision_place(&level->per_node, processes_per_node);
    return place < 0 ? NULL : &level->rows[place];
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
