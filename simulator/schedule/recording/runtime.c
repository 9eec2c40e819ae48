/* The needs of algorithms besides MPI (internal.h, tasks.h): scratch memory, copies and reductions. MPI's own
 * collectives cannot be recorded. */
#include "mock_ups.h"
#include "recording.h"

#include <stdlib.h>

/* A buffer for so many bytes. What lies beyond its end would be taken for other data, or for the program's own. */
static char *payload_for(int which, size_t bytes) {
    const recording *to = recording_now;
    if (bytes > PAYLOAD_BUFFER_BYTES) {
        const collwise_algorithm *by = to->algorithm;
        recording_fail(recording_now,
                       "process %d of %s %s needs %zu bytes of memory, and a recording has room for 1 EiB",
                       to->now.rank, by == NULL ? "experiment" : by->collective,
                       by == NULL ? to->wanted->experiment : by->name, bytes);
    }
    return recording_payload(which);
}

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    (void)comm;
    if (bytes > 0) {
        recording_add(SCHEDULE_ALLOCATE, 0, recording_size_number(recording_now, bytes));
    }
    return payload_for(3, bytes);
}

void collwise_scratch_free(char *scratch) { (void)scratch; }

void collwise_copy(char *to, const char *from, size_t bytes) {
    (void)to, (void)from;
    recording_copy(bytes);
}

void collwise_clear(char *data, size_t bytes) {
    (void)data;
    recording_copy(bytes);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

char *collwise_message_memory(size_t bytes, MPI_Comm comm) {
    collwise_memory *extra = &recording_now->made->extra;
    (void)comm;
    extra->message_bytes = larger(extra->message_bytes, bytes);
    return payload_for(2, bytes);
}

int *collwise_integer_memory(size_t count, MPI_Comm comm) {
    collwise_memory *extra = &recording_now->made->extra;
    (void)comm;
    extra->integer_bytes = larger(extra->integer_bytes, count * sizeof(int));
    recording_now->now.integers = recording_checked(realloc(recording_now->now.integers, count * sizeof(int)));
    return recording_now->now.integers;
}

void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements) {
    (void)left, (void)right;
    if (elements > 0) {
        recording_add(SCHEDULE_REDUCE, 0, recording_size_number(recording_now, elements * op->element_bytes));
    }
}

void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements) {
    collwise_combine(op, right, left, elements);
}

void collwise_combine_received(const collwise_operation *op, char *data, char *received, size_t elements,
                               int sender_is_lower) {
    (void)sender_is_lower;
    collwise_combine(op, received, data, elements);
}

int collwise_has_library(void) { return 1; }

static _Noreturn void refuse_library(void) {
    recording_fail(recording_now, "MPI's own collectives between nodes cannot be recorded");
}

void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root) {
    (void)to, (void)data, (void)bytes, (void)root;
    refuse_library();
}

void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root) {
    (void)to, (void)sum, (void)elements, (void)op, (void)root;
    refuse_library();
}

void collwise_add_library_gather(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                 int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_scatter(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                  int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_allgather(collwise_rounds *to, char *all, const int *counts, const int *displacements) {
    (void)to, (void)all, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_alltoall(collwise_rounds *to, const char *send, char *receive, const int *counts,
                                   const int *displacements) {
    (void)to, (void)send, (void)receive, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_barrier(collwise_rounds *to) {
    (void)to;
    refuse_library();
}

const collwise_observer *collwise_observer_of(MPI_Comm comm) {
    (void)comm;
    return recording_now->has_tasks ? &recording_now->tasks : NULL;
}

int collwise_rank_in(MPI_Comm comm) { return recording_rank_in(comm); }

int collwise_size_of(MPI_Comm comm) { return recording_size_of(comm); }

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), degree);
}
