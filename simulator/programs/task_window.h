/* The experiments with tasks, by name (task_times.h):
 *
 *     tasks                    the whole collective
 *     tasks:FIRST:END:STEPS    tasks FIRST to END - 1 alone, and of these the steps in STEPS, such as sbib;
 *                              all of them if STEPS is empty
 */
#ifndef COLLWISE_TASK_WINDOW_H
#define COLLWISE_TASK_WINDOW_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    size_t first, end; /* 0 as the end: all */
    char steps[32];    /* "": all */
} task_window;

/* True if `experiment` is one of these; fills in what it runs. */
static inline int task_window_read(const char *experiment, task_window *wanted) {
    *wanted = (task_window){0};
    if (strcmp(experiment, "tasks") == 0) {
        return 1;
    }
    char rest;
    int read = sscanf(experiment, "tasks:%zu:%zu:%31[a-z]%c", &wanted->first, &wanted->end, wanted->steps, &rest);
    int ends_in_colon = experiment[0] != '\0' && experiment[strlen(experiment) - 1] == ':';
    return (read == 3 || (read == 2 && ends_in_colon)) && wanted->first < wanted->end;
}

#endif
