/* The things that calls of a thread leave for its later ones, so that these ask MPI less. */
#ifndef COLLWISE_INTERPOSE_THREAD_H
#define COLLWISE_INTERPOSE_THREAD_H

#include "interpose.h"

/* The communicators that this thread has used recently. An entry is valid until any state is freed. */
enum { INTERPOSE_CACHED_STATES = 8 };

typedef struct {
    MPI_Comm comm;
    unsigned generation;
    interpose_state *state; /* with its rows */
} interpose_cached_state;

/* Named datatypes that this thread has used recently. They are never freed, so a handle keeps its meaning. */
enum { INTERPOSE_CACHED_TYPES = 16 };

typedef struct {
    int is_set;
    MPI_Datatype type;
    MPI_Count bytes;
    MPI_Aint low, extent;
} interpose_cached_type;

/* The calls that this thread left to MPI last: those of a collective on a communicator with fewer than `below` elements
 * of a named datatype. Valid until any state is freed. */
typedef struct {
    MPI_Comm comm;
    MPI_Datatype type;
    unsigned generation, below;
} interpose_short_calls;

/* The predefined operation that this thread used last, and the named datatype. Neither is ever freed. */
typedef struct {
    int is_set;
    MPI_Op op;
    MPI_Datatype type;
} interpose_cached_operation;

typedef struct {
    interpose_cached_operation operation;
    interpose_cached_state states[INTERPOSE_CACHED_STATES];
    interpose_short_calls short_calls[COLLWISE_COLLECTIVES];
    interpose_cached_type types[INTERPOSE_CACHED_TYPES];
} interpose_thread;

/* The calling thread's, for reading: a constant one without any entries until it has its own. A pointer, since a
 * library that is loaded late finds the static block of thread-local variables nearly full. */
extern _Thread_local __attribute__((tls_model("initial-exec")))
INTERPOSE_HIDDEN const interpose_thread *interpose_stored;

/* Makes the calling thread's own, which is freed when the thread ends; aborts the program without memory. */
interpose_thread *interpose_make_thread(void);

extern const interpose_thread interpose_empty_thread INTERPOSE_HIDDEN;

/* The calling thread's own, for writing. */
static inline interpose_thread *interpose_own_thread(void) {
    return interpose_stored != &interpose_empty_thread ? (interpose_thread *)interpose_stored : interpose_make_thread();
}

#endif
