/* Reads the options of a command line. Uses no MPI. */
#ifndef COLLWISE_OPTIONS_H
#define COLLWISE_OPTIONS_H

#include "work_line.h"

/* The kinds of values, and the types that `value` of an option points to. */
typedef enum {
    OPTION_FLAG,   /* int: 1 where the option is given, without a value */
    OPTION_INT,    /* int: a whole number */
    OPTION_LONG,   /* long: a whole number */
    OPTION_NUMBER, /* double */
    OPTION_CHOICE, /* int: the place of a word among `words` */
    OPTION_TEXT    /* const char * */
} program_option_kind;

typedef struct {
    const char *name; /* NULL behind the last option */
    program_option_kind kind;
    void *value;
    double least, most; /* of a number */
    const char *words;  /* the choices, with bars between them, or what stands for a text in the usage */
} program_option;

/* Reads words up to a NULL; values that are not given stay. The line has the first problem with them. */
work_line program_read_options(const program_option *options, char **words);

/* Says on one line of standard error what is wrong, and how the program is used. */
void program_print_usage(const char *program, const program_option *options, const work_line *read);

#endif
