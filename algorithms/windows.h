/* Memory of the processes of a node, by which windows.c moves data (window_memory.c). A process has slots for chunks,
 * which others read, and tells them how far it has come. */
#ifndef COLLWISE_WINDOWS_H
#define COLLWISE_WINDOWS_H

#include "tasks.h"

#include <stdint.h>

/* Processes tell one another how many chunks they have published, read, contributed to, and combined. */
typedef enum {
    COLLWISE_PUBLISHED,
    COLLWISE_READ,
    COLLWISE_CONTRIBUTED,
    COLLWISE_COMBINED,
    COLLWISE_COUNTERS
} collwise_counter;

enum { COLLWISE_CHUNK_BYTES = 32 << 10, COLLWISE_SLOTS = 2 }; /* in each direction */

/* A contribution's reader, and what it tells when it has combined that. */
typedef struct {
    int root;
    uint64_t combined;
} collwise_contribution;

typedef struct collwise_window_memory collwise_window_memory;

struct collwise_window {
    collwise_within form;
    MPI_Comm comm;
    int rank, size;
    uint64_t broadcast, reduced;        /* chunks so far */
    uint64_t published[COLLWISE_SLOTS]; /* what readers tell when they have read what lies in the own slot */
    collwise_contribution contributions[COLLWISE_SLOTS];
    collwise_window_memory *memory;
};

/* All processes make it, with no chunk told. */
void collwise_window_make_memory(collwise_window *of);
void collwise_window_free(collwise_window *window);

/* True if a process has told this one at least that value. */
int collwise_window_told(const collwise_window *window, int process, collwise_counter which, uint64_t value);
/* Tells processes `first` to `end` - 1, besides the own one, after all that this one has written to its slots. */
void collwise_window_tell(const collwise_window *window, int first, int end, collwise_counter which, uint64_t value);

/* Slots are given by their places in bytes, behind the counters. */
void collwise_window_write(const collwise_window *window, size_t slot, const char *data, size_t bytes);
void collwise_window_read(const collwise_window *window, char *data, int process, size_t slot, size_t bytes);
/* The same, to where the data lies already or to the window's own memory, of one chunk. */
char *collwise_window_look(const collwise_window *window, int process, size_t slot, size_t bytes);

#endif
