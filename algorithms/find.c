/* Finding algorithms in the registry, and what they require of a number of processes and of the number that can be
 * chosen. */
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

const char *collwise_count_objection(const collwise_algorithm *algorithm, int count) {
    const char *name = algorithm->count_parameter;
    if (count == 0 || name == NULL) {
        return NULL;
    }
    if (strcmp(name, "within") == 0) {
        return count < 0 || count >= COLLWISE_WITHIN_FORMS ? "'within' has to be from 0 to 3" : NULL;
    }
    if (strcmp(name, "radix") == 0) {
        return count < 2 ? "'radix' has to be at least 2, or 0 for the default" : NULL;
    }
    return count < 0 ? "the number of chains, requests or leaders is negative" : NULL;
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
