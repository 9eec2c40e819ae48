/* The things that calls of a thread leave for its later ones, so that these ask MPI less. Not in simulation, where
 * processes may share a thread. */
#ifndef COLLWISE_INTERPOSE_THREAD_H
#define COLLWISE_INTERPOSE_THREAD_H

#include "internal.h"
#include "interpose.h"

#include <stddef.h>

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

/* The fold and the tree that this thread used last. */
typedef struct {
    int procs;
    collwise_fold fold;
} interpose_cached_fold;

typedef struct {
    int procs, rank, degree;
    collwise_tree tree;
} interpose_cached_tree;

/* Memory for short messages and lists. */
enum { INTERPOSE_SHORT_BYTES = 512, INTERPOSE_SHORT_BUFFERS = 2, INTERPOSE_LIST_BUFFERS = 3 };

typedef struct {
    _Alignas(max_align_t) char bytes[INTERPOSE_SHORT_BYTES];
    int is_used;
} interpose_short_buffer;

typedef struct {
    interpose_current_call *current; /* the call that runs an algorithm of ours; NULL outside */
    interpose_cached_operation operation;
    interpose_cached_state states[INTERPOSE_CACHED_STATES];
    interpose_short_calls short_calls[COLLWISE_COLLECTIVES];
    interpose_cached_type types[INTERPOSE_CACHED_TYPES];
    interpose_cached_fold fold;
    interpose_cached_tree tree;
    interpose_short_buffer short_buffers[INTERPOSE_SHORT_BUFFERS], list_buffers[INTERPOSE_LIST_BUFFERS];
} interpose_thread;

/* The calling thread's, for reading: a constant one without any entries until it has its own. The only variable of this
 * library in the static block of thread-local variables, which a library that is loaded late finds nearly full. */
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
