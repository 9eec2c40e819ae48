/* Strands: operations that a process does at once (strands.c). */
#ifndef COLLWISE_STRANDS_H
#define COLLWISE_STRANDS_H

#include "play.h"

/* Room for the strands of all processes. */
void play_make_strands(play *all);
/* The process has come to a fork with so many strands. Returns 1 if all are over. */
int play_begin_fork(play *all, int rank, uint32_t count);
/* Its own work is over, at which one of its strands was while the others waited. Returns the same. */
int play_go_on_after_work(play *all, int rank);
/* It is the time at which the process may take what is complete first. Returns the same. */
int play_fork_goes_on(play *all, int rank, double seconds);

#endif
