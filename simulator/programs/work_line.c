#include "work_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define MAX_SECONDS 1e6

work_line program_work_line_of(const char *text) { return (work_line){.rest = text}; }

void program_work_refuse(work_line *of, const char *format, ...) {
    if (program_work_is_right(of)) {
        va_list values;
        va_start(values, format);
        vsnprintf(of->wrong, sizeof of->wrong, format, values);
        va_end(values);
    }
}

/* Takes the next field off the line. Returns its length, 0 where there is none or after a problem. */
static size_t next_field(work_line *of, const char **field) {
    if (!program_work_is_right(of)) {
        return 0;
    }
    *field = of->rest + strspn(of->rest, BLANKS);
    size_t length = strcspn(*field, BLANKS);
    of->rest = *field + length;
    return length;
}

long long program_work_integer(work_line *of, const char *name, long long min, long long max) {
    const char *field;
    size_t length = next_field(of, &field);
    char *end = NULL;
    errno = 0;
    long long value = length > 0 ? strtoll(field, &end, 10) : 0;
    if (length > 0 && end == field + length && errno == 0 && min <= value && value <= max) {
        return value;
    }
    program_work_refuse(of, "%s is not a whole number from %lld to %lld", name, min, max);
    return min;
}

double program_work_seconds(work_line *of, const char *name) {
    const char *field;
    size_t length = next_field(of, &field);
    char *end = NULL;
    double value = length > 0 ? strtod(field, &end) : -1;
    if (length > 0 && end == field + length && 0 <= value && value <= MAX_SECONDS) {
        return value;
    }
    program_work_refuse(of, "%s is not a number of seconds from 0 to %g", name, MAX_SECONDS);
    return 0;
}

void program_work_word(work_line *of, const char *name, char *word, size_t room) {
    const char *field;
    size_t length = next_field(of, &field);
    if (length == 0) {
        program_work_refuse(of, "%s is missing", name);
    }
    snprintf(word, room, "%.*s", (int)(length < room ? length : room), length > 0 ? field : "");
}

void program_work_end(work_line *of) {
    if (of->rest[strspn(of->rest, BLANKS)] != '\0') {
        program_work_refuse(of, "there is more on the line than its fields");
    }
}

int program_work_is_right(const work_line *of) { return of->wrong[0] == '\0'; }

void program_work_print_refusal(long long id, const work_line *of) {
    printf("{\"id\": %lld, \"error\": \"%s\"}\n", id, of->wrong);
}
