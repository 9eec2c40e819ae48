/* Reads decision tables. This file and table_file.c use no MPI.
 *
 *     # collective procs processes_per_node message_bytes algorithm [PARAMETER=N]...
 *     bcast  2  1     0  default
 *     bcast  2  1  8192  split_binary  segment_bytes=8192
 *
 * Or one algorithm for each collective, for all processes and sizes:
 * "bcast=split_binary,segment_bytes=8192;barrier=bruck".
 */
#ifndef COLLWISE_INTERPOSE_TABLE_FILE_H
#define COLLWISE_INTERPOSE_TABLE_FILE_H

#include "decision.h"

/* The names that rules may use; those of parameters that an algorithm does not have are NULL. */
typedef struct {
    int collective;
    const char *name;
    const char *part_parameter;  /* segment_bytes, first_bytes or bound_bytes */
    const char *count_parameter; /* chains, radix, max_requests, within or leaders */
    const char *limit_parameter; /* limit_bytes or between_segment_bytes */
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

/* The error, and the line or entry that it is in, counted from 1. */
typedef struct {
    int line;
    char text[320];
} table_problem;

/* Appends the rules of a text; returns 0 at the first error. */
int decision_table_read(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

/* The same for a list of one algorithm for each collective; an entry replaces all rules of its collective. */
int decision_table_read_algorithms(const char *text, const table_names *names, table_rules *rules,
                                   table_problem *problem);

#endif
