/* Processes that do the same, of which those of the first period are played for all. */
#ifndef COLLWISE_SYMMETRY_H
#define COLLWISE_SYMMETRY_H

#include "engine.h"

/* The number of processes after which all repeats; that of all where nothing does, or where the order counts in which
 * equal processes are handled. Unless it is NULL, `link_of` has room for the links between switches, and receives for
 * each the one that stands for it. */
int play_period(const schedule *played, const schedule_network *network, int32_t *link_of);

#endif
