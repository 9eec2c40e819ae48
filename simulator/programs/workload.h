/* A call of any collective on data of a given size, by our algorithm or by MPI's own function. */
#ifndef COLLWISE_WORKLOAD_H
#define COLLWISE_WORKLOAD_H

#include "collwise.h"

/* The functions that allocate and free buffers. */
typedef struct {
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
} workload_memory;

typedef struct {
    collwise_collective kind;
    collwise_call call;
    int *counts, *displacements;
    workload_memory memory;
} workload;

/* The collective of this name; COLLWISE_COLLECTIVES if there is none. */
collwise_collective program_workload_kind(const char *collective);
int program_workload_is_rooted(collwise_collective kind);
int program_workload_reduces(collwise_collective kind);

/* Makes buffers and arguments for a message of `message_bytes`, as the catalogue defines it for the collective. Blocks
 * are equal, also where the collective takes one count for each process; reductions sum doubles if the message is a
 * whole number of them, else bytes. Buffers are as `memory` allocates them. The counts must fit an int. Returns 0 if
 * memory runs out. */
int program_workload_make(workload *made, collwise_collective kind, size_t message_bytes, int root, MPI_Comm comm,
                          workload_memory memory);
void program_workload_free(workload *made);

/* Calls MPI's own collective; with a request, the non-blocking one. */
void program_workload_call_mpi(collwise_collective kind, const collwise_call *call, MPI_Request *request);

#endif
