/* Memory for the algorithms' own data. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

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
