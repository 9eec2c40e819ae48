/* Simulated processes may share a thread, so that nothing is known of the one that calls. */
#ifndef COLLWISE_CURRENT_H
#define COLLWISE_CURRENT_H

#include "internal.h"

static inline const collwise_current *collwise_current_in(MPI_Comm comm) { return (void)comm, NULL; }

#endif
