/* Stores what is known of later calls. */
#include "fast_path.h"

#include <limits.h>

interpose_state *interpose_cache_state(const interpose_settings *settings, MPI_Comm comm) {
    interpose_state *state = interpose_find_state_with_rows(settings, comm);
    if (state != NULL) {
        interpose_own_thread()->states[interpose_state_index(comm)] =
            (interpose_cached_state){comm, atomic_load(&interpose_generation), state};
    }
    return state;
}

void interpose_store_short(collwise_collective kind, MPI_Datatype type, MPI_Comm comm, const decision_row *row) {
    const interpose_cached_type *known = interpose_known_type(type);
    if (known != NULL && known->bytes > 0) {
        uint64_t each = (uint64_t)known->bytes, below = row->ours_from / each + (row->ours_from % each != 0);
        unsigned most = (unsigned)INT_MAX + 1;
        interpose_own_thread()->short_calls[kind] = (interpose_short_calls){
            comm, type, atomic_load(&interpose_generation), below < most ? (unsigned)below : most};
    }
}

void interpose_store_type(MPI_Datatype type, MPI_Count bytes) {
    interpose_cached_type named = {.is_set = 1, .type = type, .bytes = bytes};
    PMPI_Type_get_extent(type, &named.low, &named.extent);
    interpose_own_thread()->types[interpose_type_index(type)] = named;
}

void interpose_store_operation(MPI_Op op, MPI_Datatype type) {
    interpose_own_thread()->operation = (interpose_cached_operation){1, op, type};
}
