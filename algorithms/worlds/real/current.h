/* The communicator whose collective the calling thread runs, if libcollwise has said so: a short call takes less time
 * than to ask MPI. */
#ifndef COLLWISE_CURRENT_H
#define COLLWISE_CURRENT_H

#include "internal.h"

/* NULL outside of such calls. A pointer, since a library that is loaded late finds the static block of thread-local
 * variables nearly full. */
extern _Thread_local __attribute__((tls_model("initial-exec"), visibility("hidden"))) collwise_current *collwise_now;

/* The place in this communicator, NULL if it is not known. */
static inline const collwise_current *collwise_current_in(MPI_Comm comm) {
    const collwise_current *now = collwise_now;
    return now != NULL && (comm == now->private || comm == now->comm) ? now : NULL;
}

#endif
