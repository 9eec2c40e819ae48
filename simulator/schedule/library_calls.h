/* Calls of collectives as they are recorded: that of the case, and a mock-up's calls of an MPI library's own ones. */
#ifndef COLLWISE_LIBRARY_CALLS_H
#define COLLWISE_LIBRARY_CALLS_H

#include "recorder.h"

/* A collective as one process calls it. Buffers are left out, since nobody reads or writes what is in them. */
typedef struct {
    collwise_collective kind;
    uint64_t message_bytes; /* as the catalogue counts them, of gatherv and scatterv this process's own */
    int root;
    const size_t *offsets; /* of collectives with blocks of any size, in bytes; of a reduce_scatter in elements */
    const collwise_operation *op; /* of reductions */
    int in_place;                 /* the process's own block is not copied */
} recorded_call;

#endif
