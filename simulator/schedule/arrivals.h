/* The order in which messages arrive on a network of usual proportions: a message takes as long as the transfer of
 * 32 KiB and its own transfer, which the sender's other messages delay; within a node an eighth of that. A message
 * leaves when it is sent and its receive is posted, so that what comes first never waits for what comes later, whatever
 * the protocol. */
#ifndef COLLWISE_ARRIVALS_H
#define COLLWISE_ARRIVALS_H

#include <stdint.h>

typedef struct arrivals arrivals;

/* Returns NULL if memory runs out. */
arrivals *arrivals_make(int procs);
void arrivals_free(arrivals *of);

typedef struct {
    int source, destination;
    int is_send, is_local;
    uint64_t bytes;
    int64_t request; /* of the process that posts this side; -1: it does not ask when the message has arrived */
} arrivals_side;

/* One side of a message is posted. Messages from one process to another are matched in order. Returns 0 if memory runs
 * out. */
int arrivals_post(arrivals *of, const arrivals_side *side);

/* Whether a request of the process is complete by now, and at which time, which is in no unit. */
int arrivals_is_complete(const arrivals *of, int process, int64_t request, uint64_t *when);

/* The process has waited for a request, which is complete: it is not told of it any more, nor does it ask again. */
void arrivals_take(arrivals *of, int process, int64_t request);

/* Goes on to the next time at which requests complete that have not been taken. Returns the process that has one, -1 if
 * nothing is under way. */
int arrivals_next(arrivals *of);

#endif
