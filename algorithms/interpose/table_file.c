/* Reads decision tables and lists of algorithms; every error names the word that is wrong. */
#include "table_file.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part of the text. */
typedef struct {
    const char *first;
    size_t length;
} span;

/* The state of the functions that read one line. */
typedef struct {
    const table_names *names;
    table_problem *problem;
} reader;

enum { COLUMNS = 5, MAX_SHOWN = 60 };

/* Stores the error message; returns 0, for the caller to return. */
__attribute__((format(printf, 2, 3))) static int wrong(reader with, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(with.problem->text, sizeof with.problem->text, format, arguments);
    va_end(arguments);
    return 0;
}

/* The precision for printing the word as %.*s: a very long one is not repeated in full. */
static int shown(span word) { return word.length < MAX_SHOWN ? (int)word.length : MAX_SHOWN; }

static int is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static span trim(span piece) {
    while (piece.length > 0 && is_blank(piece.first[0])) {
        piece = (span){piece.first + 1, piece.length - 1};
    }
    while (piece.length > 0 && is_blank(piece.first[piece.length - 1])) {
        piece.length--;
    }
    return piece;
}

/* Removes and returns what stands before `separator`, or all of the text if there is none. */
static span cut(span *text, char separator) {
    const char *end = text->length > 0 ? memchr(text->first, separator, text->length) : NULL;
    span piece = {text->first, end == NULL ? text->length : (size_t)(end - text->first)};
    size_t taken = piece.length + (end != NULL);
    *text = (span){text->first + taken, text->length - taken};
    return piece;
}

static span next_word(span *line) {
    *line = trim(*line);
    size_t length = 0;
    while (length < line->length && !is_blank(line->first[length])) {
        length++;
    }
    span word = {line->first, length};
    *line = (span){line->first + length, line->length - length};
    return word;
}

static int equals(span word, const char *name) {
    return strlen(name) == word.length && strncmp(word.first, name, word.length) == 0;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* The Levenshtein distance between the names. */
static size_t distance(span word, const char *name) {
    size_t length = strlen(name), row[MAX_SHOWN + 1];
    if (length > MAX_SHOWN) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (size_t i = 0; i < word.length; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t changed = diagonal + (word.first[i] != name[j]);
            diagonal = row[j + 1];
            row[j + 1] = least(changed, 1 + least(diagonal, row[j]));
        }
    }
    return row[length];
}

/* The one of two names that is nearer to the word. `best` may be NULL; a name that is too far away does not count. */
static const char *nearer(span word, const char *best, const char *name) {
    size_t far = distance(word, name);
    if (far > word.length / 2 || (best != NULL && distance(word, best) <= far)) {
        return best;
    }
    return name;
}

static int unknown(reader with, const char *kind, span word, const char *near) {
    return wrong(with, "unknown %s '%.*s'%s%s%s", kind, shown(word), word.first, near == NULL ? "" : "; did you mean ",
                 near == NULL ? "" : near, near == NULL ? "" : "?");
}

static int read_collective(reader with, span word, int *collective) {
    const char *near = NULL;
    for (int i = 0; i < with.names->collective_count; i++) {
        if (equals(word, with.names->collectives[i])) {
            *collective = i;
            return 1;
        }
        near = nearer(word, near, with.names->collectives[i]);
    }
    return unknown(with, "collective", word, near);
}

static int read_algorithm(reader with, span word, int collective, int *algorithm) {
    if (equals(word, "default")) {
        *algorithm = DECISION_DEFAULT;
        return 1;
    }
    const char *near = nearer(word, NULL, "default");
    for (int i = 0; i < with.names->algorithm_count; i++) {
        if (with.names->algorithms[i].collective != collective) {
            continue;
        }
        if (equals(word, with.names->algorithms[i].name)) {
            *algorithm = i;
            return 1;
        }
        near = nearer(word, near, with.names->algorithms[i].name);
    }
    char kind[80];
    snprintf(kind, sizeof kind, "%s algorithm", with.names->collectives[collective]);
    return unknown(with, kind, word, near);
}

static int read_number(reader with, span word, const char *what, uint64_t low, uint64_t high, uint64_t *number) {
    uint64_t value = 0;
    int digits = word.length > 0;
    for (size_t i = 0; digits && i < word.length; i++) {
        uint64_t digit = (uint64_t)(word.first[i] - '0');
        digits = word.first[i] >= '0' && word.first[i] <= '9' && value <= (high - digit) / 10;
        value = 10 * value + digit;
    }
    if (!digits || value < low || value > high) {
        return wrong(with, "%s is '%.*s'; it is a whole number from %llu to %llu", what, shown(word), word.first,
                     (unsigned long long)low, (unsigned long long)high);
    }
    *number = value;
    return 1;
}

static int is_named(span word, const char *name) { return name != NULL && equals(word, name); }

/* NAME=N, a parameter that the algorithm has. */
static int read_parameter(reader with, span word, decision_choice *choice) {
    static const table_algorithm none = {0};
    const table_algorithm *algorithm =
        choice->algorithm == DECISION_DEFAULT ? &none : &with.names->algorithms[choice->algorithm];
    span value = word;
    span name = cut(&value, '=');
    uint64_t number = 0;
    if (is_named(name, algorithm->part_parameter)) {
        int valid = read_number(with, value, algorithm->part_parameter, 0, LLONG_MAX, &number);
        choice->part_bytes = (size_t)number;
        return valid;
    }
    if (is_named(name, algorithm->limit_parameter)) {
        int valid = read_number(with, value, algorithm->limit_parameter, 0, LLONG_MAX, &number);
        choice->limit_bytes = (size_t)number;
        return valid;
    }
    if (is_named(name, algorithm->count_parameter)) {
        int is_form = equals(name, "within");
        uint64_t least = equals(name, "radix") ? 2 : !is_form, most = is_form ? 3 : INT_MAX;
        int valid = read_number(with, value, algorithm->count_parameter, least, most, &number);
        choice->count = (int)number;
        return valid;
    }
    const char *names[] = {algorithm->part_parameter, algorithm->limit_parameter, algorithm->count_parameter};
    char valid[80] = "";
    for (int i = 0; i < 3; i++) {
        if (names[i] != NULL) {
            strcat(strcat(valid, valid[0] == '\0' ? "" : ", "), names[i]);
        }
    }
    const char *algorithm_name = algorithm == &none ? "default" : algorithm->name;
    return wrong(with, "%s has no parameter '%.*s'; valid: %s", algorithm_name, shown(name), name.first,
                 valid[0] == '\0' ? "none" : valid);
}

static int append(reader with, table_rules *rules, decision_rule rule) {
    if (rules->count == rules->room) {
        size_t room = 2 * rules->room + 64;
        decision_rule *longer = realloc(rules->list, room * sizeof *longer);
        if (longer == NULL) {
            return wrong(with, "out of memory");
        }
        rules->list = longer;
        rules->room = room;
    }
    rules->list[rules->count++] = rule;
    return 1;
}

static int read_rule(reader with, span line, table_rules *rules) {
    span words[COLUMNS];
    int found = 0;
    for (; found < COLUMNS && trim(line).length > 0; found++) {
        words[found] = next_word(&line);
    }
    decision_rule rule = {0};
    if (!read_collective(with, words[0], &rule.collective)) {
        return 0;
    }
    if (found < COLUMNS) {
        return wrong(with,
                     "%d of 5 columns; a rule is: collective procs processes_per_node message_bytes algorithm "
                     "[PARAMETER=N]...",
                     found);
    }
    if (!read_number(with, words[1], "procs", 1, INT_MAX, &rule.procs) ||
        !read_number(with, words[2], "processes_per_node", 1, INT_MAX, &rule.processes_per_node) ||
        !read_number(with, words[3], "message_bytes", 0, LLONG_MAX, &rule.message_bytes) ||
        !read_algorithm(with, words[4], rule.collective, &rule.choice.algorithm)) {
        return 0;
    }
    while (trim(line).length > 0) {
        if (!read_parameter(with, next_word(&line), &rule.choice)) {
            return 0;
        }
    }
    return append(with, rules, rule);
}

int decision_table_read(const char *text, const table_names *names, table_rules *rules, table_problem *problem) {
    reader with = {names, problem};
    span rest = {text, strlen(text)};
    for (problem->line = 1; rest.length > 0; problem->line++) {
        span line = cut(&rest, '\n');
        span rule = trim(cut(&line, '#'));
        if (rule.length > 0 && !read_rule(with, rule, rules)) {
            return 0;
        }
    }
    return 1;
}

static void drop(table_rules *rules, int collective) {
    size_t kept = 0;
    for (size_t i = 0; i < rules->count; i++) {
        if (rules->list[i].collective != collective) {
            rules->list[kept++] = rules->list[i];
        }
    }
    rules->count = kept;
}

/* COLLECTIVE=ALGORITHM[,PARAMETER=N]... */
static int read_entry(reader with, span entry, table_rules *rules) {
    decision_rule rule = {.procs = 1, .processes_per_node = 1};
    if (memchr(entry.first, '=', entry.length) == NULL) {
        return wrong(with, "'%.*s' is not COLLECTIVE=ALGORITHM", shown(entry), entry.first);
    }
    span collective = trim(cut(&entry, '='));
    span algorithm = trim(cut(&entry, ','));
    if (!read_collective(with, collective, &rule.collective) ||
        !read_algorithm(with, algorithm, rule.collective, &rule.choice.algorithm)) {
        return 0;
    }
    while (entry.length > 0) {
        if (!read_parameter(with, trim(cut(&entry, ',')), &rule.choice)) {
            return 0;
        }
    }
    drop(rules, rule.collective);
    return append(with, rules, rule);
}

int decision_table_read_algorithms(const char *text, const table_names *names, table_rules *rules,
                                   table_problem *problem) {
    reader with = {names, problem};
    span rest = {text, strlen(text)};
    for (problem->line = 1; rest.length > 0; problem->line++) {
        span entry = trim(cut(&rest, ';'));
        if (entry.length > 0 && !read_entry(with, entry, rules)) {
            return 0;
        }
    }
    return 1;
}
