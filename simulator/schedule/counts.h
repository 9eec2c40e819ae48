/* Counts of what the processes of a schedule do altogether, in whatever order (bounds.py). */
#ifndef COLLWISE_COUNTS_H
#define COLLWISE_COUNTS_H

#include "recorder.h"

enum { SCHEDULE_KINDS = SCHEDULE_MOVE + 1 };

/* Adds the number of operations of each program, kind and size to `counts`, in this order. Waits, forks, and
 * messages of a process to itself, do not count. */
void schedule_count(const schedule *of, uint32_t *counts);

#endif
