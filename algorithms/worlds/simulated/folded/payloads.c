/* Users' data that has no values, as in sweeps: that of all simulated processes shares the same memory. Times do not
 * depend on values, and the data of ninety processes with a hundred blocks each would not fit. */
#include "charges.h"
#include "mock_ups.h"

#include <stdio.h>

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    char *memory = SMPI_SHARED_MALLOC(bytes + 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for %zu bytes\n", bytes);
        MPI_Abort(comm, 1);
    }
    collwise_charge_memory(bytes);
    return memory;
}

void collwise_scratch_free(char *scratch) {
    if (scratch != NULL) {
        SMPI_SHARED_FREE(scratch);
    }
}

void collwise_copy(char *to, const char *from, size_t bytes) {
    (void)to, (void)from;
    collwise_charge_copy(bytes);
}

void collwise_clear(char *data, size_t bytes) { (void)data, (void)bytes; }

/* Shared memory takes many mappings: what is needed is allocated. */
void collwise_make_room(collwise_buffer *buffer, size_t bytes, size_t most, MPI_Comm comm) {
    (void)most;
    if (buffer->bytes < bytes) {
        collwise_scratch_free(buffer->data);
        *buffer = (collwise_buffer){collwise_scratch(bytes, comm), bytes};
    }
}

void collwise_compute(const collwise_operation *op, const char *left, char *right, size_t elements) {
    (void)op, (void)left, (void)right, (void)elements;
}
