/* The work of ports and links: the messages that a stage serves, in the order in which they end there, and the
 * stages that serve any, in the order in which they end the next one. */
#ifndef COLLWISE_STAGES_H
#define COLLWISE_STAGES_H

#include "play.h"

#include <string.h>

/* A time, or a virtual one, above a number: keys of heaps, in the order of times, and of numbers at the same time. */
typedef unsigned __int128 key;

/* Times are not negative, so that their bits have their order. */
static inline key key_make(double time, uint64_t number) {
    uint64_t bits;
    memcpy(&bits, &time, sizeof bits);
    return (key)bits << 64 | number;
}

static inline double key_time(key one) {
    uint64_t bits = (uint64_t)(one >> 64);
    double time;
    memcpy(&time, &bits, sizeof time);
    return time;
}

/* --- The messages of a stage -------------------------------------------------------------------------------------- */

/* The queue has the messages that came in the order of their ends, as messages of one size do. They are from `first`
 * to `end`; the others are in a heap. */
typedef struct {
    key first_key; /* the queue of a stage that never serves several messages at once */
    key *queue, *heap;
    uint32_t first, end, queue_room, heap_count, heap_room;
} served;

/* A message ends at a stage, or the time in which its sender waits for it. */
enum { RELEASES_SENDER, ENDS_MESSAGE };

static inline key served_key(double virtual_end, uint32_t order, int32_t message, uint32_t kind) {
    return key_make(virtual_end, (uint64_t)order << 32 | (uint32_t)message << 1 | kind);
}
static inline int32_t served_message(key one) { return (int32_t)((uint32_t)one >> 1); }
static inline int served_releases_sender(key one) { return ((uint32_t)one & ENDS_MESSAGE) == 0; }

static inline int served_is_in_queue(const served *of) {
    return of->heap_count == 0 || (of->first < of->end && of->queue[of->first] < of->heap[0]);
}
/* The next one to end, of at least one. */
static inline key served_next(const served *of) { return served_is_in_queue(of) ? of->queue[of->first] : of->heap[0]; }

void play_served_push(play *all, served *to, key added);
key play_served_pop(served *from);
void play_served_free(served *of);

/* --- Busy stages -------------------------------------------------------------------------------------------------- */

/* A heap of stages, by their next end and number. */
typedef struct {
    key *keys;
    size_t count;
    int32_t *place_of; /* each stage's place in it, or NONE, or UNUSED: it has not been in it yet */
} busy_stages;

enum { UNUSED = -2 };

static inline int32_t busy_stage(key one) { return (int32_t)(uint32_t)one; }
/* Puts a stage where it belongs, or takes it out. */
void play_busy_settle(busy_stages *to, int32_t number, double next_seconds);
void play_busy_remove(busy_stages *from, int32_t number);

#endif
