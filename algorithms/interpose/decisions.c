/* The functions of collwise_decisions.h: tables for programs that choose for themselves. */
#include "collwise_decisions.h"

#include "interpose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(char *problem, const char *path, int line, const char *what) {
    if (line > 0) {
        snprintf(problem, COLLWISE_PROBLEM_ROOM, "%s:%d: %s", path, line, what);
    } else {
        snprintf(problem, COLLWISE_PROBLEM_ROOM, "%s: %s", path, what);
    }
}

collwise_decisions *collwise_decisions_read(const char *path, char problem[COLLWISE_PROBLEM_ROOM]) {
    char *text = interpose_read_file(path);
    if (text == NULL) {
        say(problem, path, 0, strerror(errno));
        return NULL;
    }
    table_names names = interpose_names();
    table_rules rules = {0};
    table_problem wrong = {0};
    decision_table *table = NULL;
    if (!decision_table_read(text, &names, &rules, &wrong)) {
        say(problem, path, wrong.line, wrong.text);
    } else if ((table = decision_table_make(rules.list, rules.count, COLLWISE_COLLECTIVES)) == NULL) {
        say(problem, path, 0, "out of memory");
    }
    free((void *)names.algorithms);
    free(rules.list);
    free(text);
    return table;
}

void collwise_decisions_free(collwise_decisions *table) { decision_table_free(table); }

collwise_decision collwise_decide(const collwise_decisions *table, collwise_collective kind, int procs,
                                  int processes_per_node, size_t message_bytes) {
    const decision_row *row = decision_table_row(table, (int)kind, (uint64_t)procs, (uint64_t)processes_per_node);
    const decision_choice *choice = row == NULL ? NULL : decision_row_choice(row, message_bytes);
    if (choice == NULL || choice->algorithm == DECISION_DEFAULT) {
        return (collwise_decision){0};
    }
    return (collwise_decision){&collwise_registry[choice->algorithm], interpose_parameters(choice)};
}
