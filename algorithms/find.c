/* Finding algorithms in the registry, and what they require of a number of processes. */
#include "collwise.h"

#include <string.h>

const collwise_algorithm *collwise_find(const char *collective, const char *name) {
    for (const collwise_algorithm *entry = collwise_registry; entry->collective != NULL; entry++) {
        if (strcmp(entry->collective, collective) == 0 && strcmp(entry->name, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

const char *collwise_procs_objection(const collwise_algorithm *algorithm, int procs) {
    if ((algorithm->needs & COLLWISE_NEEDS_POWER_OF_TWO) != 0 && (procs & (procs - 1)) != 0) {
        return "needs a power of two processes";
    }
    if ((algorithm->needs & COLLWISE_NEEDS_EVEN) != 0 && procs % 2 != 0) {
        return "needs an even number of processes";
    }
    return NULL;
}
