/* Decision tables for C programs that choose for themselves: which algorithm runs a call. Programs link libcollwise.so,
 * which replaces no call of MPI unless its own variables ask for it (docs/interposing.md).
 *
 *     char problem[COLLWISE_PROBLEM_ROOM];
 *     collwise_decisions *table = collwise_decisions_read("rules.txt", problem);
 *     collwise_decision chosen = collwise_decide(table, COLLWISE_BCAST, procs, processes_per_node, bytes);
 *     if (chosen.algorithm != NULL && collwise_objection(chosen.algorithm, &call) == NULL) {
 *         collwise_run(chosen.algorithm, &call, chosen.with);
 *     }
 *
 * No function is collective: all processes have to read the same table. */
#ifndef COLLWISE_DECISIONS_H
#define COLLWISE_DECISIONS_H

#include "collwise.h"

typedef struct decision_table collwise_decisions;

enum { COLLWISE_PROBLEM_ROOM = 512 };

/* The table in a file of `collwise export --format collwise`. NULL if it cannot be read; then `problem` has the line
 * and what is wrong there. */
collwise_decisions *collwise_decisions_read(const char *path, char problem[COLLWISE_PROBLEM_ROOM]);
void collwise_decisions_free(collwise_decisions *table);

/* The algorithm is NULL where MPI's own is to run: the rule says so, or there is none. */
typedef struct {
    const collwise_algorithm *algorithm;
    collwise_parameters with;
} collwise_decision;

/* The decision for a call; `message_bytes` are those that the catalogue defines for the collective. */
collwise_decision collwise_decide(const collwise_decisions *table, collwise_collective kind, int procs,
                                  int processes_per_node, size_t message_bytes);

#endif
