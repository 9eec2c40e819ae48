/* Reads the lines of work lists: fields separated by blanks, one request a line. Uses no MPI. */
#ifndef COLLWISE_WORK_LINE_H
#define COLLWISE_WORK_LINE_H

#include <stddef.h>

/* A line that is being read from left to right, and the first problem with it. */
typedef struct {
    const char *rest; /* what has not been read */
    char wrong[96];   /* the problem, without quotes, for a JSON text; empty: none */
} work_line;

work_line program_work_line_of(const char *text);

/* The next field: a whole number from `min` to `max`, a number of seconds from 0 to 1e6, or a word, which is cut
 * where `word` has no room. After a problem every field is `min`, 0 or empty. */
long long program_work_integer(work_line *of, const char *name, long long min, long long max);
double program_work_seconds(work_line *of, const char *name);
void program_work_word(work_line *of, const char *name, char *word, size_t room);

/* Says what is wrong with the line, as printf does, unless something already is. */
__attribute__((format(printf, 2, 3))) void program_work_refuse(work_line *of, const char *format, ...);

/* More fields on the line are a problem. */
void program_work_end(work_line *of);

/* True if there has been no problem so far. */
int program_work_is_right(const work_line *of);

/* The record of a line with a problem: `id` is -1 where it could not be read. */
void program_work_print_refusal(long long id, const work_line *of);

#endif
