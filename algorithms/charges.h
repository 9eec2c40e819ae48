/* The time that memory, copies and reductions of users' data are charged where computation takes none by itself. */
#ifndef COLLWISE_CHARGES_H
#define COLLWISE_CHARGES_H

#include "internal.h"

/* An algorithm's own memory is new to the process, unless the allocator kept it from the last call. */
static inline void collwise_charge_memory(size_t bytes) {
    if ((double)bytes >= collwise_host_property("collwise/kept-memory-bytes")) {
        collwise_spend(collwise_host_property("collwise/allocate-seconds-per-byte") * (double)bytes);
    }
}

static inline void collwise_charge_copy(size_t bytes) {
    collwise_spend(collwise_host_property("collwise/copy-seconds-per-byte") * (double)bytes);
}

#endif
