/* Reads decision tables. This file and table_file.c use no MPI.
 *
 *     # collective procs processes_per_node message_bytes algorithm [segment_bytes=N] [limit_bytes=N] [fanout=N]
 *     bcast  2  1     0  default
 *     bcast  2  1  8192  split_binary  segment_bytes=8192
 *
 * Or one algorithm for each collective, for all processes and sizes:
 * "bcast=split_binary,segment_bytes=8192;barrier=bruck".
 */
#ifndef COLLWISE_INTERPOSE_TABLE_FILE_H
#define COLLWISE_INTERPOSE_TABLE_FILE_H

#include "decision.h"

/* The names that rules may use. */
typedef struct {
    int collective;
    const char *name;
} table_algorithm;

typedef struct {
    const char *const *collectives;
    int collective_count;
    const table_algorithm *algorithms;
    int algorithm_count;
} table_names;

/* The rules read so far. The caller starts with {0} and frees `list` at the end. */
typedef struct {
    decision_rule *list;
    size_t count, room;
} table_rules;

/* What is wrong, and in which line or entry, counted from 1. */
typedef struct {
    int line;
    char text[320];
} table_problem;

/* Appends the rules of a text; returns 0 at the first error. */
int table_read(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

/* The same for a list of one algorithm for each collective; an entry replaces all rules of its collective. */
int table_read_algorithms(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

#endif
