/* Decision tables as text. No MPI here.
 *
 *     # collective procs processes_per_node message_bytes algorithm [segment_bytes=N] [limit_bytes=N] [fanout=N]
 *     bcast  2  1     0  default
 *     bcast  2  1  8192  split_binary  segment_bytes=8192
 *
 * And one algorithm a collective, for all processes and sizes: "bcast=split_binary,segment_bytes=8192;barrier=bruck".
 */
#ifndef COLLWISE_INTERPOSE_TABLE_FILE_H
#define COLLWISE_INTERPOSE_TABLE_FILE_H

#include "decision.h"

/* The names that a text may use. */
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

/* Rules read so far; start with {0}, free `list` at the end. */
typedef struct {
    decision_rule *list;
    size_t count, room;
} table_rules;

/* What is wrong, and in which line, or entry, from 1 on. */
typedef struct {
    int line;
    char text[320];
} table_problem;

/* Appends the rules of a text; 0 on the first thing that is wrong. */
int table_read(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

/* The same of a text with one algorithm a collective, which takes the place of all rules of that collective. */
int table_read_algorithms(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

#endif
