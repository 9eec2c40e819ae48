/* The memory of mock-ups besides the user's buffers, kept with the private communicator. */
#include "mock_ups.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    char *messages;
    int *integers;
    collwise_memory room;
} extra_buffers;

static _Noreturn void refuse(const char *which, size_t bytes, MPI_Comm comm) {
    fprintf(stderr, "collwise: a mock-up needs %zu bytes, more than its %s buffer has\n", bytes, which);
    MPI_Abort(comm, 1);
    abort();
}

#ifdef COLLWISE_FOLD_PAYLOADS

/* All processes share the memory of messages, which takes many mappings: what is needed is allocated. */
static extra_buffers *make_buffers(MPI_Comm comm) {
    extra_buffers *made = collwise_allocate(sizeof *made, comm);
    *made = (extra_buffers){.integers = collwise_allocate(atomic_load(&max_integer_bytes), comm),
                            .room.integer_bytes = atomic_load(&max_integer_bytes)};
    return made;
}

static void make_room(extra_buffers *buffers, size_t bytes, MPI_Comm comm) {
    if (buffers->room.message_bytes < bytes) {
        collwise_scratch_free(buffers->messages);
        buffers->messages = collwise_scratch(bytes, comm);
        buffers->room.message_bytes = bytes;
    }
}

void collwise_clear(char *data, size_t bytes) { (void)data, (void)bytes; }

#else

static extra_buffers *make_buffers(MPI_Comm comm) {
    extra_buffers *made = collwise_allocate(sizeof *made, comm);
    collwise_memory room = collwise_max_memory();
    *made = (extra_buffers){.messages = collwise_allocate(room.message_bytes, comm),
                            .integers = collwise_allocate(room.integer_bytes, comm),
                            .room = room};
    return made;
}

static void make_room(extra_buffers *buffers, size_t bytes, MPI_Comm comm) { (void)buffers, (void)bytes, (void)comm; }

void collwise_clear(char *data, size_t bytes) { memset(data, 0, bytes); }

#endif

static void release(void *value) {
    extra_buffers *buffers = value;
    collwise_scratch_free(buffers->messages);
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
    make_room(buffers, bytes, comm);
    if (bytes > buffers->room.message_bytes) {
        refuse("message", bytes, comm);
    }
    return buffers->messages;
}

int *collwise_integer_memory(size_t count, MPI_Comm comm) {
    const extra_buffers *buffers = buffers_of(comm);
    if (count * sizeof(int) > buffers->room.integer_bytes) {
        refuse("integer", count * sizeof(int), comm);
    }
    return buffers->integers;
}
