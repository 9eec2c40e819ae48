/* Texts of tables: what they mean, and what is said where they are malformed. */
#include "interpose/table_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const collectives[] = {"bcast", "gather", "allreduce"};
static const table_algorithm algorithms[] = {
    {0, "binomial", "segment_bytes", NULL, NULL},       {0, "k_chain", "segment_bytes", "chains", NULL},
    {1, "lmo", "bound_bytes", NULL, "limit_bytes"},     {2, "ring", NULL, NULL, NULL},
    {2, "tasks_ring", "segment_bytes", "within", NULL},
};
static const table_names names = {collectives, 3, algorithms, 5};

typedef int reader(const char *text, const table_names *names, table_rules *rules, table_problem *problem);

static long complain(const char *text, const char *what) {
    printf("'%s': %s\n", text, what);
    return 1;
}

/* The last rule of the text, against the expected one. */
static long right(reader *read, const char *text, size_t count, decision_rule expected) {
    table_rules rules = {0};
    table_problem problem = {0};
    long failures = 0;
    if (!read(text, &names, &rules, &problem)) {
        failures = complain(text, problem.text);
    } else if (rules.count != count) {
        failures = complain(text, "another number of rules");
    } else if (count > 0) {
        const decision_rule *last = &rules.list[count - 1];
        int same =
            last->collective == expected.collective && last->procs == expected.procs &&
            last->processes_per_node == expected.processes_per_node && last->message_bytes == expected.message_bytes &&
            last->choice.algorithm == expected.choice.algorithm &&
            last->choice.part_bytes == expected.choice.part_bytes &&
            last->choice.limit_bytes == expected.choice.limit_bytes && last->choice.count == expected.choice.count;
        failures = same ? 0 : complain(text, "another rule");
    }
    free(rules.list);
    return failures;
}

static long malformed(reader *read, const char *text, int line, const char *said) {
    table_rules rules = {0};
    table_problem problem = {0};
    long failures = 0;
    if (read(text, &names, &rules, &problem)) {
        failures = complain(text, "taken as right");
    } else if (problem.line != line || strstr(problem.text, said) == NULL) {
        failures = complain(text, problem.text);
    }
    free(rules.list);
    return failures;
}

static long check_tables(void) {
    decision_rule none = {0};
    decision_rule rule = {0, 2, 1, 8192, {1, 0, 8192, 0}}, wide = {0, 4, 2, 0, {1, 5, 0, 0}};
    decision_rule own = {1, 2, 1, 0, {DECISION_DEFAULT, 0, 0, 0}};
    decision_rule large = {0, 1, 1, 9223372036854775807u, {0, 0, 0, 0}};
    decision_rule limited = {1, 2, 1, 0, {2, 0, 5120, 65536}};
    decision_rule sockets = {2, 2, 1, 0, {4, 3, 0, 0}};
    return right(decision_table_read, "", 0, none) + right(decision_table_read, "# nothing\n\n  \t\r\n", 0, none) +
           right(decision_table_read, "bcast 2 1 8192 k_chain segment_bytes=8192", 1, rule) +
           right(decision_table_read, "# a\r\nbcast 2 1 8192 k_chain segment_bytes=8192 # why\r\n", 1, rule) +
           right(decision_table_read, "allreduce 2 1 0 tasks_ring within=3", 1, sockets) +
           right(decision_table_read, "gather 2 1 0 default\n\tbcast\t4 2 0 k_chain chains=5\n", 2, wide) +
           right(decision_table_read, "gather 2 1 0 default", 1, own) +
           right(decision_table_read, "bcast 1 1 9223372036854775807 binomial", 1, large) +
           right(decision_table_read, "gather 2 1 0 lmo bound_bytes=5120 limit_bytes=65536", 1, limited) +
           malformed(decision_table_read, "bcst 2 1 0 default", 1, "unknown collective 'bcst'; did you mean bcast?") +
           malformed(decision_table_read, "\n\nbcast 2 1 0 k_chan", 3, "did you mean k_chain?") +
           malformed(decision_table_read, "gather 2 1 0 k_chain", 1, "unknown gather algorithm 'k_chain'") +
           malformed(decision_table_read, "bcast 2 1 default", 1, "4 of 5 columns") +
           malformed(decision_table_read, "bcast", 1, "1 of 5 columns") +
           malformed(decision_table_read, "bcast two 1 0 default", 1, "procs is 'two'") +
           malformed(decision_table_read, "bcast 0 1 0 default", 1, "procs is '0'") +
           malformed(decision_table_read, "bcast 2 0 0 default", 1, "processes_per_node is '0'") +
           malformed(decision_table_read, "bcast 2 1 -1 default", 1, "message_bytes is '-1'") +
           malformed(decision_table_read, "bcast 2 1 8KiB default", 1, "message_bytes is '8KiB'") +
           malformed(decision_table_read, "bcast 2 1 9223372036854775808 default", 1, "message_bytes is") +
           malformed(decision_table_read, "bcast 2 1 99999999999999999999999 default", 1, "message_bytes is") +
           malformed(decision_table_read, "bcast 3000000000 1 0 default", 1, "procs is '3000000000'") +
           malformed(decision_table_read, "bcast 2 1 0 binomial segmnt_bytes=1", 1,
                     "binomial has no parameter 'segmnt_bytes'; valid: segment_bytes") +
           malformed(decision_table_read, "bcast 2 1 0 binomial segment_bytes", 1, "segment_bytes is ''") +
           malformed(decision_table_read, "gather 2 1 0 lmo limt_bytes=1", 1, "valid: bound_bytes, limit_bytes") +
           malformed(decision_table_read, "gather 2 1 0 lmo limit_bytes=-1", 1, "limit_bytes is '-1'") +
           malformed(decision_table_read, "bcast 2 1 0 k_chain chains=0", 1, "chains is '0'") +
           malformed(decision_table_read, "allreduce 2 1 0 tasks_ring within=4", 1, "within is '4'") +
           malformed(decision_table_read, "bcast 2 1 0 default chains=2", 1,
                     "default has no parameter 'chains'; valid: none") +
           malformed(decision_table_read,
                     "\x7f"
                     "ELF\x02\x01",
                     1, "unknown collective");
}

static long check_algorithms(void) {
    decision_rule ring = {2, 1, 1, 0, {3, 0, 0, 0}}, split = {0, 1, 1, 0, {1, 2, 64, 0}};
    return right(decision_table_read_algorithms, "allreduce=ring", 1, ring) +
           right(decision_table_read_algorithms, " ; allreduce = ring ; ", 1, ring) +
           right(decision_table_read_algorithms, "allreduce=ring;bcast=k_chain,segment_bytes=64,chains=2", 2, split) +
           right(decision_table_read_algorithms, "bcast=binomial;bcast=k_chain,segment_bytes=64,chains=2", 1, split) +
           malformed(decision_table_read_algorithms, "bcast", 1, "'bcast' is not COLLECTIVE=ALGORITHM") +
           malformed(decision_table_read_algorithms, "bcast=binomial;bcast=", 2, "unknown bcast algorithm ''") +
           malformed(decision_table_read_algorithms, "allreduce=rng", 1, "did you mean ring?") +
           malformed(decision_table_read_algorithms, "bcast=binomial,64", 1, "binomial has no parameter '64'");
}

/* A list goes before the table for the collectives that it names, and for no others. */
static long check_precedence(void) {
    table_rules rules = {0};
    table_problem problem = {0};
    long failures =
        !decision_table_read("bcast 2 1 0 default\ngather 2 1 0 lmo\nbcast 9 1 0 binomial", &names, &rules, &problem) +
        !decision_table_read_algorithms("bcast=k_chain", &names, &rules, &problem);
    failures += rules.count != 2 || rules.list[0].collective != 1 || rules.list[1].choice.algorithm != 1;
    free(rules.list);
    return failures;
}

/* Any one byte of a table changed: read or refused, never worse (the sanitizers watch). */
static long check_damage(void) {
    static const char whole[] = "bcast 2 1 8192 k_chain segment_bytes=8192 chains=3\ngather 2 1 0 default # x\n";
    char text[sizeof whole];
    long failures = 0;
    for (size_t place = 0; place + 1 < sizeof whole; place++) {
        for (int byte = 0; byte < 256; byte++) {
            table_rules rules = {0};
            table_problem problem = {0};
            memcpy(text, whole, sizeof whole);
            text[place] = (char)byte;
            int taken = decision_table_read(text, &names, &rules, &problem);
            failures += !taken && (problem.line < 1 || problem.line > 3 || problem.text[0] == '\0');
            free(rules.list);
        }
    }
    return failures;
}

int main(void) {
    long failures = check_tables() + check_algorithms() + check_precedence() + check_damage();
    printf("%ld failures\n", failures);
    return failures != 0;
}
