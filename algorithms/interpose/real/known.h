/* A thread knows of a call, without asking MPI, what it has stored of earlier ones. */
#ifndef COLLWISE_INTERPOSE_KNOWN_H
#define COLLWISE_INTERPOSE_KNOWN_H

#include "thread.h"

#include <stdint.h>

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

/* Stores the properties of a named datatype. */
void interpose_store_type(MPI_Datatype type, MPI_Count bytes);

static inline MPI_Count interpose_element_bytes(MPI_Datatype type) {
    const interpose_cached_type *known = interpose_known_type(type);
    return known != NULL ? known->bytes : interpose_query_element_bytes(type);
}

/* True if a reduction with this operation and datatype is known to be valid. */
static inline int interpose_is_known_operation(MPI_Op op, MPI_Datatype type) {
    const interpose_cached_operation *known = &interpose_stored->operation;
    return known->is_set && known->op == op && known->type == type;
}

/* Stores that it is. */
void interpose_store_operation(MPI_Op op, MPI_Datatype type);

/* True if it is stored that no rule for messages as short as this names an algorithm of ours. */
static inline int interpose_is_short(collwise_collective kind, int count, MPI_Datatype type, MPI_Comm comm) {
    const interpose_short_calls *stored = &interpose_stored->short_calls[kind];
    return stored->comm == comm && stored->type == type && (unsigned)count < stored->below &&
           stored->generation == atomic_load_explicit(&interpose_generation, memory_order_acquire);
}

#endif
