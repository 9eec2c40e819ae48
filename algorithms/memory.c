/* Memory. In the build for sweeps (COLLWISE_FOLD_PAYLOADS) users' data of all simulated processes shares the same
 * memory: times do not depend on values, and the data of ninety processes with a hundred blocks each would not fit. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SMPI_SHARED_MALLOC
#include <simgrid/actor.h>
#include <simgrid/host.h>

double collwise_host_property(const char *property) {
    const char *text = sg_host_get_property_value(sg_host_self(), property);
    return text == NULL ? 0 : strtod(text, NULL);
}

void collwise_spend(double seconds) {
    if (seconds > 0) {
        sg_actor_sleep_for(seconds);
    }
}
#else
double collwise_host_property(const char *property) {
    (void)property;
    return 0;
}

void collwise_spend(double seconds) { (void)seconds; }
#endif

/* An algorithm's own memory is new to the process, unless the allocator kept it from the last call. */
static void charge_memory(size_t bytes) {
    if ((double)bytes >= collwise_host_property("collwise/kept-memory-bytes")) {
        collwise_spend(collwise_host_property("collwise/allocate-seconds-per-byte") * (double)bytes);
    }
}

static void charge_copy(size_t bytes) {
    collwise_spend(collwise_host_property("collwise/copy-seconds-per-byte") * (double)bytes);
}

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for %zu bytes\n", bytes);
        MPI_Abort(comm, 1);
    }
    return memory;
}

size_t *collwise_sizes(size_t count, MPI_Comm comm) { return collwise_allocate(count * sizeof(size_t), comm); }

void collwise_sizes_free(size_t *sizes) { free(sizes); }

#ifdef COLLWISE_FOLD_PAYLOADS

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    char *memory = SMPI_SHARED_MALLOC(bytes + 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for %zu bytes\n", bytes);
        MPI_Abort(comm, 1);
    }
    charge_memory(bytes);
    return memory;
}

void collwise_scratch_free(char *scratch) {
    if (scratch != NULL) {
        SMPI_SHARED_FREE(scratch);
    }
}

void collwise_copy(char *to, const char *from, size_t bytes) {
    (void)to;
    (void)from;
    charge_copy(bytes);
}

#else

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    charge_memory(bytes);
    return collwise_allocate(bytes, comm);
}

void collwise_scratch_free(char *scratch) { free(scratch); }

void collwise_copy(char *to, const char *from, size_t bytes) {
    if (bytes > 0) {
        memmove(to, from, bytes);
    }
    charge_copy(bytes);
}

#endif
