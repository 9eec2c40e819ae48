/* The memory of mock-ups besides the user's buffers, kept with the private communicator. */
#include "mock_ups.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The sizes of the buffers, which are the same for all processes, simulated ones included. */
static atomic_size_t max_message_bytes = COLLWISE_MESSAGE_BUFFER_BYTES;
static atomic_size_t max_integer_bytes = COLLWISE_INTEGER_BUFFER_BYTES;

void collwise_limit_memory(collwise_memory most) {
    atomic_store(&max_message_bytes, most.message_bytes);
    atomic_store(&max_integer_bytes, most.integer_bytes);
}

collwise_memory collwise_max_memory(void) {
    return (collwise_memory){atomic_load(&max_message_bytes), atomic_load(&max_integer_bytes)};
}

typedef struct {
    collwise_buffer messages;
    int *integers;
    size_t integer_bytes;
} extra_buffers;

static _Noreturn void refuse(const char *which, size_t bytes, MPI_Comm comm) {
    fprintf(stderr, "collwise: a mock-up needs %zu bytes, more than its %s buffer has\n", bytes, which);
    MPI_Abort(comm, 1);
    abort();
}

static extra_buffers *make_buffers(MPI_Comm comm) {
    extra_buffers *made = collwise_allocate(sizeof *made, comm);
    size_t bytes = atomic_load(&max_integer_bytes);
    *made = (extra_buffers){.integers = collwise_allocate(bytes, comm), .integer_bytes = bytes};
    collwise_make_room(&made->messages, 0, atomic_load(&max_message_bytes), comm);
    return made;
}

static void release(void *value) {
    extra_buffers *buffers = value;
    collwise_scratch_free(buffers->messages.data);
    free(buffers->integers);
    free(buffers);
}

static extra_buffers *buffers_of(MPI_Comm comm) {
    extra_buffers *made = collwise_kept(comm, COLLWISE_KEPT_BUFFERS);
    if (made == NULL) {
        made = make_buffers(comm);
        collwise_keep(comm, COLLWISE_KEPT_BUFFERS, made, release);
    }
    return made;
}

void collwise_make_buffers(MPI_Comm comm) { buffers_of(comm); }

char *collwise_message_memory(size_t bytes, MPI_Comm comm) {
    extra_buffers *buffers = buffers_of(comm);
    collwise_make_room(&buffers->messages, bytes, atomic_load(&max_message_bytes), comm);
    if (bytes > buffers->messages.bytes) {
        refuse("message", bytes, comm);
    }
    return buffers->messages.data;
}

int *collwise_integer_memory(size_t count, MPI_Comm comm) {
    const extra_buffers *buffers = buffers_of(comm);
    if (count * sizeof(int) > buffers->integer_bytes) {
        refuse("integer", count * sizeof(int), comm);
    }
    return buffers->integers;
}
