/* Users' data that has values: scratch memory, copies and reductions of it. */
#include "charges.h"
#include "mock_ups.h"

#include <stdlib.h>
#include <string.h>

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    collwise_charge_memory(bytes);
    return collwise_allocate(bytes, comm);
}

void collwise_scratch_free(char *scratch) { free(scratch); }

void collwise_copy(char *to, const char *from, size_t bytes) {
    if (bytes > 0) {
        memmove(to, from, bytes);
    }
    collwise_charge_copy(bytes);
}

void collwise_clear(char *data, size_t bytes) { memset(data, 0, bytes); }

void collwise_make_room(collwise_buffer *buffer, size_t bytes, size_t most, MPI_Comm comm) {
    (void)bytes;
    if (buffer->data == NULL) {
        *buffer = (collwise_buffer){collwise_allocate(most, comm), most};
    }
}
