/* The code that every call of the generated wrappers runs first. Most calls of most programs are forwarded to PMPI, and
 * pay only for the code in this file. */
#ifndef COLLWISE_INTERPOSE_FAST_PATH_H
#define COLLWISE_INTERPOSE_FAST_PATH_H

#include "interpose.h"
#include "known.h"

/* True if calls of a collective have to be looked at: they are counted, or some rule names an algorithm of ours. */
static inline int interpose_watches(collwise_collective kind) {
    return (int)(atomic_load_explicit(&interpose_watched, memory_order_relaxed) >> kind & 1);
}

/* The rules for a call on this communicator; NULL if none of them names an algorithm of ours. Sets *state to the
 * communicator's. If calls are counted, sets *is_counted instead: interpose_run() handles all of them. */
static inline const decision_row *interpose_row_of(collwise_collective kind, MPI_Comm comm, interpose_state **state,
                                                   int *is_counted) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    *state = NULL;
    *is_counted = settings != NULL && settings->counting != 0;
    if (settings == NULL || *is_counted) {
        return NULL;
    }
    *state = interpose_state_of(settings, comm);
    return *state == NULL ? NULL : (*state)->rows[kind];
}

/* True if the call can be forwarded to PMPI without further checks. */
static inline int interpose_forwards(collwise_collective kind, MPI_Comm comm) {
    interpose_state *state;
    int is_counted;
    return interpose_row_of(kind, comm, &state, &is_counted) == NULL && !is_counted;
}

/* The same for collectives whose message is `count` elements: shorter messages than those of the first rule that names
 * an algorithm of ours are forwarded as well. */
static inline int interpose_forwards_sized(collwise_collective kind, int count, MPI_Datatype type, MPI_Comm comm) {
    interpose_state *state;
    int is_counted;
    const decision_row *row = interpose_row_of(kind, comm, &state, &is_counted);
    if (row == NULL || count < 0 || type == MPI_DATATYPE_NULL) {
        return !is_counted;
    }
    MPI_Count bytes = count * interpose_element_bytes(type);
    if (bytes >= 0 && (uint64_t)bytes >= row->ours_from) {
        return 0;
    }
    interpose_store_short(kind, type, comm, row);
    return 1;
}

/* True if both calls have their buffers in place, or neither. */
static inline int interpose_is_same(const void *buffer, const void *other) {
    return (buffer == MPI_IN_PLACE) == (other == MPI_IN_PLACE);
}

#endif
