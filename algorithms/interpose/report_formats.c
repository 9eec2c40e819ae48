/* The report as text, JSON and CSV. */
#include "interpose.h"

#include <string.h>

/* The name of the collective, and what ran: an algorithm of ours, or MPI's own with the reason. */
static const char *name_of(const interpose_record *record) { return interpose_functions[record->function].name; }

/* Seconds within the calls of a line, by the mean process. */
static double mean_seconds(const interpose_record *record) {
    return record->procs > 0 ? record->seconds / record->procs / record->communicators : 0;
}

enum { OUTCOME_TEXT = 2 * INTERPOSE_TEXT + 16 };

static void describe_outcome(char text[OUTCOME_TEXT], const interpose_record *record) {
    snprintf(text, OUTCOME_TEXT, "%s%s%s%s", record->is_ours ? "" : "MPI's own: ", record->outcome,
             record->parameters[0] == '\0' ? "" : " ", record->parameters);
}

/* The sizes that have this bit length. */
static unsigned long long min_bytes(int bits) { return bits < 2 ? (unsigned long long)bits : 1ULL << (bits - 1); }

static unsigned long long max_bytes(int bits) { return min_bytes(bits) + (bits < 2 ? 0 : min_bytes(bits) - 1); }

/* "0", "1", "2 to 3", "4 to 7"; "-" for a size that is not known. */
static void describe_sizes(char *text, size_t room, int bits) {
    if (bits == INTERPOSE_NO_SIZE) {
        snprintf(text, room, "-");
    } else if (bits < 2) {
        snprintf(text, room, "%d", bits);
    } else {
        snprintf(text, room, "%llu to %llu", min_bytes(bits), max_bytes(bits));
    }
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* Whether the records share a line of the text. They are sorted, those of one name next to each other. */
static int share_line(const interpose_record *a, const interpose_record *b) {
    return a->function == b->function && a->procs == b->procs && a->processes_per_node == b->processes_per_node &&
           a->is_ours == b->is_ours && strcmp(a->outcome, b->outcome) == 0 &&
           strcmp(a->parameters, b->parameters) == 0 && a->size_bits == b->size_bits &&
           strcmp(a->communicator, b->communicator) == 0;
}

static void merge_lines(interpose_report *report) {
    int merged = 0;
    for (int i = 0; i < report->count; i++) {
        interpose_record *last = &report->list[merged - 1];
        if (merged > 0 && share_line(last, &report->list[i])) {
            last->communicators++;
            last->calls += report->list[i].calls;
            last->seconds += report->list[i].seconds;
        } else {
            report->list[merged++] = report->list[i];
        }
    }
    report->count = merged;
}

static void print_line(FILE *to, const interpose_record *record, int width) {
    char sizes[64], outcome[OUTCOME_TEXT];
    describe_sizes(sizes, sizeof sizes, record->size_bits);
    describe_outcome(outcome, record);
    fprintf(to, "%-20s  %9d  %-*s  %24s  %10lld  %10.6f  %s", name_of(record), record->procs, width, outcome, sizes,
            record->calls, mean_seconds(record), record->communicator[0] == '\0' ? "unnamed" : record->communicator);
    if (record->communicators > 1) {
        fprintf(to, " (%d of them)", record->communicators);
    }
    fprintf(to, "\n");
}

void interpose_write_text(FILE *to, interpose_report *report) {
    int width = (int)strlen("algorithm");
    double within = 0;
    merge_lines(report);
    for (int i = 0; i < report->count; i++) {
        char outcome[OUTCOME_TEXT];
        describe_outcome(outcome, &report->list[i]);
        width = (int)strlen(outcome) > width ? (int)strlen(outcome) : width;
        within += report->list[i].seconds / report->procs;
    }
    fprintf(to, "collwise: collectives of this run of %d processes, counted once a call\n", report->procs);
    fprintf(to, "%-20s  %9s  %-*s  %24s  %10s  %10s  %s\n", "collective", "processes", width, "algorithm",
            "message bytes", "calls", "seconds", "communicator");
    int printed = 0;
    for (int i = 0; i < report->count; i++) {
        if (report->list[i].calls > 0) {
            print_line(to, &report->list[i], width);
            printed++;
        }
    }
    if (printed == 0) {
        fprintf(to, "none was called\n");
    }
    fprintf(to, "\ncollwise: the mean process spent %.6f of %.6f s within these calls (%.1f %%)\n", within,
            report->seconds, report->seconds > 0 ? 100 * within / report->seconds : 0);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* Names are the program's: all that is not printable ASCII becomes a question mark. */
static char printable(char c) { return c < ' ' || c > '~' ? '?' : c; }

static void json_string(FILE *to, const char *key, const char *text) {
    fprintf(to, ", \"%s\": \"", key);
    for (; *text != '\0'; text++) {
        char c = printable(*text);
        fprintf(to, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    fputc('"', to);
}

static void json_size(FILE *to, const interpose_record *record) {
    if (record->size_bits == INTERPOSE_NO_SIZE) {
        fprintf(to, ", \"min_bytes\": null, \"max_bytes\": null, \"mean_bytes\": null");
    } else {
        fprintf(to, ", \"min_bytes\": %llu, \"max_bytes\": %llu, \"mean_bytes\": %.17g", min_bytes(record->size_bits),
                max_bytes(record->size_bits), record->bytes / (double)record->all_calls);
    }
}

void interpose_write_json(FILE *to, const interpose_report *report) {
    fprintf(to, "{\"collwise_report\": 1, \"processes\": %d, \"seconds\": %.9f, \"rows\": [", report->procs,
            report->seconds);
    for (int i = 0, is_first = 1; i < report->count; i++) {
        const interpose_record *record = &report->list[i];
        if (record->calls == 0) {
            continue;
        }
        fprintf(to, "%s\n{\"collective\": \"%s\"", is_first ? "" : ",", name_of(record));
        is_first = 0;
        json_string(to, "communicator", record->communicator);
        json_string(to, "ranks", record->ranks);
        fprintf(to, ", \"processes\": %d, \"processes_per_node\": %d", record->procs, record->processes_per_node);
        json_string(to, record->is_ours ? "algorithm" : "mpis_own", record->outcome);
        if (record->is_ours) {
            json_string(to, "parameters", record->parameters);
        }
        json_size(to, record);
        fprintf(to, ", \"calls\": %lld, \"seconds\": %.9f, \"shortest_seconds\": %.9f, \"longest_seconds\": %.9f}",
                record->calls, mean_seconds(record), record->shortest, record->longest);
    }
    fprintf(to, "\n]}\n");
}

/* --- CSV ---------------------------------------------------------------------------------------------------------- */

static void csv_string(FILE *to, const char *text) {
    fputc('"', to);
    for (; *text != '\0'; text++) {
        char c = printable(*text);
        fprintf(to, c == '"' ? "\"\"" : "%c", c);
    }
    fprintf(to, "\",");
}

void interpose_write_csv(FILE *to, const interpose_report *report) {
    fprintf(to, "collective,communicator,ranks,processes,processes_per_node,algorithm,parameters,mpis_own,min_bytes,"
                "max_bytes,mean_bytes,calls,seconds,shortest_seconds,longest_seconds\n");
    for (int i = 0; i < report->count; i++) {
        const interpose_record *record = &report->list[i];
        if (record->calls == 0) {
            continue;
        }
        fprintf(to, "%s,", name_of(record));
        csv_string(to, record->communicator);
        csv_string(to, record->ranks);
        fprintf(to, "%d,%d,", record->procs, record->processes_per_node);
        csv_string(to, record->is_ours ? record->outcome : "");
        csv_string(to, record->parameters);
        csv_string(to, record->is_ours ? "" : record->outcome);
        if (record->size_bits == INTERPOSE_NO_SIZE) {
            fprintf(to, ",,,");
        } else {
            fprintf(to, "%llu,%llu,%.17g,", min_bytes(record->size_bits), max_bytes(record->size_bits),
                    record->bytes / (double)record->all_calls);
        }
        fprintf(to, "%lld,%.9f,%.9f,%.9f\n", record->calls, mean_seconds(record), record->shortest, record->longest);
    }
}
