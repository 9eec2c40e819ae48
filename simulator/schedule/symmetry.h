/* Processes that do the same, of which those of the first period are played for all. */
#ifndef COLLWISE_SYMMETRY_H
#define COLLWISE_SYMMETRY_H

#include "engine.h"

/* The number of processes after which all repeats; that of all where nothing does, or where the order counts in which
 * equal processes are handled. */
int play_period(const schedule *played, const schedule_network *network);

#endif
