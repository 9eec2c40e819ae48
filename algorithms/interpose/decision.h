/* Which algorithm a call takes: rules by collective, processes, processes per node and message size. No MPI here. */
#ifndef COLLWISE_INTERPOSE_DECISION_H
#define COLLWISE_INTERPOSE_DECISION_H

#include <stddef.h>
#include <stdint.h>

/* As an algorithm: MPI's own collective. */
enum { DECISION_DEFAULT = -1 };

typedef struct {
    int algorithm; /* a place in the list that rules were read against, or DECISION_DEFAULT */
    int fanout;
    size_t segment_bytes, limit_bytes;
} decision_choice;

typedef struct {
    int collective; /* from 0 on */
    uint64_t procs, processes_per_node, message_bytes;
    decision_choice choice;
} decision_rule;

/* Ascending keys. They are divided into slots by bit length and the `fine` bits behind the leading one, about as many
 * as there are keys; what a slot still holds is halved. */
typedef struct {
    uint64_t *keys;
    uint32_t *below; /* below[s]: how many keys lie in slots before s */
    uint64_t least;  /* the first key */
    uint32_t count;
    int fine;
} decision_steps;

/* The rules of a collective, a number of processes and one of processes per node. */
typedef struct {
    decision_steps sizes;
    decision_choice *choices;
    uint64_t ours_from; /* below this it is MPI's own; UINT64_MAX if always */
} decision_row;

typedef struct decision_table decision_table;

/* A table of the rules, in which later ones win over earlier ones of the same key. NULL if memory runs out. Nothing in
 * a table changes once it is made. */
decision_table *decision_table_make(const decision_rule *rules, size_t count, int collectives);
void decision_table_free(decision_table *table);

/* The row of the largest `procs` and then the largest processes_per_node that are not above these; NULL if there is
 * none. */
const decision_row *decision_table_row(const decision_table *table, int collective, uint64_t procs,
                                       uint64_t processes_per_node);

/* Whether processes per node make a difference: the rules for `procs` name more of them than 1. */
int decision_table_asks_nodes(const decision_table *table, int collective, uint64_t procs);

/* Whether the collective has a rule that is not MPI's own. */
int decision_table_has(const decision_table *table, int collective);

static inline uint32_t decision_slot(uint64_t value, int fine) {
    if (value == 0) {
        return 0;
    }
    int zeros = __builtin_clzll(value);
    uint64_t behind_leading_one = value << zeros << 1;
    return (uint32_t)(64 - zeros) << fine | (uint32_t)(behind_leading_one >> 1 >> (63 - fine));
}

/* The place of the largest key that is not above the value; -1 if there is none. */
static inline int64_t decision_place(const decision_steps *steps, uint64_t value) {
    if (value < steps->least || steps->count < 2) {
        return value < steps->least || steps->count == 0 ? -1 : 0;
    }
    uint32_t slot = decision_slot(value, steps->fine);
    uint32_t low = steps->below[slot], high = steps->below[slot + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (steps->keys[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (int64_t)low - 1;
}

/* What a message of that size takes; NULL if the row begins above it. */
static inline const decision_choice *decision_row_choice(const decision_row *row, uint64_t message_bytes) {
    int64_t place = decision_place(&row->sizes, message_bytes);
    return place < 0 ? NULL : &row->choices[place];
}

#endif
