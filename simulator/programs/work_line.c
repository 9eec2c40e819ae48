#include "work_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r,"

work_line program_work_line_of(const char *text) { return (work_line){.rest = text}; }

int program_work_next(char **text, work_line *next) {
    do {
        next->rest = strsep(text, "\n"); /* strtok's state would be in the C library, which simulated processes share */
    } while (next->rest != NULL && program_work_is_over(next));
    next->wrong[0] = '\0';
    return next->rest != NULL;
}

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

double program_work_number(work_line *of, const char *name, double min, double max) {
    const char *field;
    size_t length = next_field(of, &field);
    char *end = NULL;
    double value = length > 0 ? strtod(field, &end) : 0;
    if (length > 0 && end == field + length && min <= value && value <= max) {
        return value;
    }
    program_work_refuse(of, "%s is not a number from %.16g to %.16g", name, min, max);
    return min;
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
    if (!program_work_is_over(of)) {
        program_work_refuse(of, "there is more on the line than its fields");
    }
}

int program_work_is_right(const work_line *of) { return of->wrong[0] == '\0'; }

int program_work_is_over(const work_line *of) { return of->rest[strspn(of->rest, BLANKS)] == '\0'; }

void program_work_print_refusal(FILE *to, long long id, const work_line *of) {
    fprintf(to, "{\"id\": %lld, \"error\": \"%s\"}\n", id, of->wrong);
}
