/* Point-to-point models without a trace: a schedule's times under several sets of parameters in one pass. */
#ifndef COLLWISE_MODELS_H
#define COLLWISE_MODELS_H

#include "engine.h"

/* True if a network is a point-to-point model on which play_by_models plays the schedule. Strands need an order of time
 * that differs between networks. */
int play_models_can(const schedule *played, const schedule_network *network);
/* The number of networks, from the first on, that play_by_models can play together: those with the nodes and protocols
 * of the first, and no more than fit into a bounded memory. */
size_t play_models_together(const schedule *played, const schedule_network *const *networks, size_t count);
/* Plays the first `procs` processes, all or a period (symmetry.h), on each network. `ends` has for each process in turn
 * the times at which it is done on each network. Returns 0 if the schedule cannot be played to its end, for a reason
 * that engine.c finds and reports. */
int play_by_models(const schedule *played, const schedule_network *const *networks, size_t count, int procs,
                   double *ends);

#endif
