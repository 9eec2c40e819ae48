/* The code that every call of the generated wrappers runs first. Most calls of most programs are forwarded to PMPI, and
 * pay only for the code in this file. */
#ifndef COLLWISE_INTERPOSE_FAST_PATH_H
#define COLLWISE_INTERPOSE_FAST_PATH_H

#include "interpose.h"

#include <stdint.h>

#ifdef SMPI_SHARED_MALLOC

/* Simulated processes may share a thread, so nothing is cached for a thread. */
static inline interpose_state *interpose_state_of(const interpose_settings *settings, MPI_Comm comm) {
    return interpose_find_state_with_rows(settings, comm);
}

static inline MPI_Count interpose_element_bytes(MPI_Datatype type) { return interpose_query_element_bytes(type); }

static inline void interpose_store_short(collwise_collective kind, MPI_Datatype type, MPI_Comm comm,
                                         const decision_row *row) {
    (void)kind;
    (void)type;
    (void)comm;
    (void)row;
}

#else

#include "thread.h"

/* Looks the state up and stores it. */
interpose_state *interpose_cache_state(const interpose_settings *settings, MPI_Comm comm);

/* The index of its entry. */
static inline size_t interpose_state_index(MPI_Comm comm) {
    uintptr_t handle = (uintptr_t)comm;
    return (handle ^ handle >> 4 ^ handle >> 8) % INTERPOSE_CACHED_STATES;
}

/* The stored state; NULL if there is none. */
static inline interpose_state *interpose_known_state(MPI_Comm comm) {
    const interpose_cached_state *entry = &interpose_stored->states[interpose_state_index(comm)];
    return entry->comm == comm && entry->generation == atomic_load_explicit(&interpose_generation, memory_order_acquire)
               ? entry->state
               : NULL;
}

static inline interpose_state *interpose_state_of(const interpose_settings *settings, MPI_Comm comm) {
    interpose_state *known = interpose_known_state(comm);
    return known != NULL ? known : interpose_cache_state(settings, comm);
}

/* The index of a named datatype's entry. */
static inline size_t interpose_type_index(MPI_Datatype type) {
    uintptr_t handle = (uintptr_t)type;
    return (handle ^ handle >> 4 ^ handle >> 9) % INTERPOSE_CACHED_TYPES;
}

/* The stored properties of a datatype; NULL if there are none. */
static inline const interpose_cached_type *interpose_known_type(MPI_Datatype type) {
    const interpose_cached_type *entry = &interpose_stored->types[interpose_type_index(type)];
    return entry->is_set && entry->type == type ? entry : NULL;
}

/* Stores that calls are shorter than those for which the rules name an algorithm of ours. */
void interpose_store_short(collwise_collective kind, MPI_Datatype type, MPI_Comm comm, const decision_row *row);

/* True if the operation is one of MPI's own for reductions; all of these commute. */
int interpose_is_predefined(MPI_Op op);

static inline MPI_Count interpose_element_bytes(MPI_Datatype type) {
    const interpose_cached_type *known = interpose_known_type(type);
    return known != NULL ? known->bytes : interpose_query_element_bytes(type);
}

#endif

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

#ifdef SMPI_SHARED_MALLOC

/* Simulated processes share the states of communicators, so no call of one of them is stored. */
static inline interpose_state *interpose_known_state(MPI_Comm comm) {
    (void)comm;
    return NULL;
}

static inline int interpose_is_short(collwise_collective kind, int count, MPI_Datatype type, MPI_Comm comm) {
    (void)kind;
    (void)count;
    (void)type;
    (void)comm;
    return 0;
}

#else

/* True if it is stored that no rule for messages as short as this names an algorithm of ours. */
static inline int interpose_is_short(collwise_collective kind, int count, MPI_Datatype type, MPI_Comm comm) {
    const interpose_short_calls *stored = &interpose_stored->short_calls[kind];
    return stored->comm == comm && stored->type == type && (unsigned)count < stored->below &&
           stored->generation == atomic_load_explicit(&interpose_generation, memory_order_acquire);
}

#endif

/* True if both calls have their buffers in place, or neither. */
static inline int interpose_is_same(const void *buffer, const void *other) {
    return (buffer == MPI_IN_PLACE) == (other == MPI_IN_PLACE);
}

#endif
