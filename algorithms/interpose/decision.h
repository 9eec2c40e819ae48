/* Decision tables: which algorithm a call takes, by collective, processes, processes per node and message size. This
 * file and decision.c use no MPI. */
#ifndef COLLWISE_INTERPOSE_DECISION_H
#define COLLWISE_INTERPOSE_DECISION_H

#include <stddef.h>
#include <stdint.h>

/* In place of an algorithm: MPI's own collective. */
enum { DECISION_DEFAULT = -1 };

typedef struct {
    int algorithm; /* index in the list of algorithms that the rules were read with, or DECISION_DEFAULT */
    int count;     /* the algorithm's number: chains, radix or max_requests */
    size_t part_bytes, limit_bytes; /* its size: segment_bytes, first_bytes or bound_bytes */
} decision_choice;

typedef struct {
    int collective; /* index, from 0 */
    uint64_t procs, processes_per_node, message_bytes;
    decision_choice choice;
} decision_rule;

/* Ascending keys, and an index that makes looking one up independent of their number: keys with the same bit length and
 * the same `slot_bits` bits behind the leading one share a slot. Within a slot the search is binary. */
typedef struct {
    uint64_t *keys;
    uint32_t *before; /* before[s]: the number of keys in the slots before s */
    uint32_t count;
    int slot_bits;
} decision_steps;

/* The rules for one collective, number of processes and number of processes per node. */
typedef struct {
    decision_steps sizes;
    decision_choice *choices;
    uint64_t ours_from; /* the smallest message with an algorithm of ours; UINT64_MAX if there is none */
} decision_row;

typedef struct decision_table decision_table;

/* A table of the rules; of several rules with the same keys the last one counts. NULL if memory runs out. A table does
 * not change once it is made. */
decision_table *decision_table_make(const decision_rule *rules, size_t count, int collectives);
void decision_table_free(decision_table *table);

/* The row with the largest `procs` and then the largest processes_per_node that do not exceed the given ones; NULL if
 * there is none. */
const decision_row *decision_table_row(const decision_table *table, int collective, uint64_t procs,
                                       uint64_t processes_per_node);

/* True if the rules for `procs` depend on the processes per node: they name more than 1. */
int decision_table_asks_nodes(const decision_table *table, int collective, uint64_t procs);

/* True if some rule of the collective names an algorithm of ours. */
int decision_table_has(const decision_table *table, int collective);

static inline uint32_t decision_slot(uint64_t value, int slot_bits) {
    if (value == 0) {
        return 0;
    }
    int zeros = __builtin_clzll(value);
    uint64_t behind_leading_one = value << zeros << 1;
    return (uint32_t)(64 - zeros) << slot_bits | (uint32_t)(behind_leading_one >> 1 >> (63 - slot_bits));
}

/* The index of the largest key that does not exceed the value; -1 if there is none. Most slots have at most one key: a
 * processor cannot predict how that compares with the value, so the last comparison is no branch. */
static inline int64_t decision_find(const decision_steps *steps, uint64_t value) {
    uint32_t slot = decision_slot(value, steps->slot_bits);
    uint32_t low = steps->before[slot], high = steps->before[slot + 1];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (steps->keys[middle] <= value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    uint32_t is_at_most = (low < high) & (steps->keys[low] <= value);
    return (int64_t)low + is_at_most - 1;
}

/* The choice for a message size; NULL if the row's rules are all for larger messages. */
static inline const decision_choice *decision_row_choice(const decision_row *row, uint64_t message_bytes) {
    int64_t index = decision_find(&row->sizes, message_bytes);
    return index < 0 ? NULL : &row->choices[index];
}

#endif
