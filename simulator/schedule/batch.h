/* Many schedules on one network, for maps of times that are computed again whenever a parameter changes. */
#ifndef COLLWISE_BATCH_H
#define COLLWISE_BATCH_H

#include "engine.h"

/* Plays `count` schedules of equal process counts one after another. The tables of the network have a column for each
 * of `columns` sizes, those of all schedules together: size i of schedule k is in column column_of[k][i]. `seconds`
 * receives the time of each until its last process is done, nan if it failed; the first problem is in `problem`. Where
 * it is known before the end that schedule k takes longer than max_seconds[k], its time is infinite. */
void schedule_play_batch(size_t count, const schedule *const *played, const uint32_t *const *column_of,
                         const schedule_network *network, size_t columns, const double *max_seconds, double *seconds,
                         char *problem, size_t problem_bytes);

#endif
