/* The order in which messages arrive on a network: a message takes its latency and its own transfer, which other
 * messages delay that leave the same node for others. */
#ifndef COLLWISE_ARRIVALS_H
#define COLLWISE_ARRIVALS_H

#include <stdint.h>

typedef struct arrivals arrivals;

/* The times of messages on a network, each as the bytes that leave a node's port in that time. */
typedef struct {
    uint64_t latency_bytes, local_latency_bytes; /* between nodes and within a node */
    double local_share;                          /* of a byte within a node, by one between nodes */
    double reduce_share;                         /* of reducing a byte, by sending one between nodes */
    uint64_t eager_bytes; /* shorter messages do not let their sender wait until they have left */
    int leaves_at_once;   /* nor do they wait for their receives; others do */
} arrivals_proportions;

/* Each process's node is a number from 0 to procs - 1; without these each has one of its own. Without proportions they
 * are usual ones. The nodes must live as long. Returns NULL if memory runs out. */
arrivals *recording_arrivals_make(int procs, const int *node_of, const arrivals_proportions *network);
void recording_arrivals_free(arrivals *of);

typedef struct {
    int source, destination;
    int is_send;
    uint64_t bytes;
    int64_t request; /* of the process that posts this side; -1: it does not ask when the message has arrived */
} arrivals_side;

/* One side of a message is posted. Messages from one process to another are matched in order. Returns 0 if memory runs
 * out. */
int recording_arrivals_post(arrivals *of, const arrivals_side *side);

/* True if a request of the process is complete by now, and at which time, which is in no unit. */
int recording_arrivals_is_complete(const arrivals *of, int process, int64_t request, uint64_t *when);

/* The process has waited for a request, which is complete: it is not told of it any more, nor does it ask again. */
void recording_arrivals_take(arrivals *of, int process, int64_t request);

/* The process reduces so many bytes. Returns 0 if memory runs out. */
int recording_arrivals_reduce(arrivals *of, int process, uint64_t bytes);
int recording_arrivals_is_reducing(const arrivals *of, int process);

/* Goes on to the next time at which requests complete that have not been taken, or a reduction ends. Returns the
 * process that has one, -1 if nothing is under way. */
int recording_arrivals_next(arrivals *of);
/* The process that has the next one, as far as is known, -1 if nothing is under way. */
int recording_arrivals_after_next(const arrivals *of);

#endif
