/* Reads the lines of work lists: fields separated by blanks or commas, one request a line. Uses no MPI. */
#ifndef COLLWISE_WORK_LINE_H
#define COLLWISE_WORK_LINE_H

#include <stdio.h>

/* A line that is being read from left to right, and the first problem with it. */
typedef struct {
    const char *rest; /* what has not been read */
    char wrong[96];   /* the problem, without quotes, for a JSON text; empty: none */
} work_line;

work_line program_work_line_of(const char *text);
/* Takes the next line that is not blank off the text, which is divided thereby; 0 at the end of the text. */
int program_work_next(char **text, work_line *next);

/* The next field: a whole number or any number from `min` to `max`, or a word, which is cut where `word` has no room.
 * After a problem every field is `min` or empty. */
long long program_work_integer(work_line *of, const char *name, long long min, long long max);
double program_work_number(work_line *of, const char *name, double min, double max);
void program_work_word(work_line *of, const char *name, char *word, size_t room);

/* Says what is wrong with the line, as printf does, unless something already is. */
__attribute__((format(printf, 2, 3))) void program_work_refuse(work_line *of, const char *format, ...);

/* More fields on the line are a problem. */
void program_work_end(work_line *of);

/* True if there has been no problem so far; true if nothing is left to read. */
int program_work_is_right(const work_line *of);
int program_work_is_over(const work_line *of);

/* Prints the record of a line with a problem: `id` is -1 where it could not be read. */
void program_work_print_refusal(FILE *to, long long id, const work_line *of);

#endif
