/* Events at stages, by time and of one instant in the order in which they were added.
 *
 * Time never goes back, so a radix heap does: bucket b > 0 has the events whose time differs from that of the last
 * event in bit b - 1 and in none above, bucket 0 those of the same time. Each bucket's events are later than those of
 * the buckets below it. Taking one from a bucket above 0 moves the bucket's others down. An event thus moves as often
 * as there are bits in which it can differ from its neighbours, along memory in its order, and not at all if many have
 * the same time. */
#ifndef COLLWISE_EVENTS_H
#define COLLWISE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    double seconds;
    int32_t message; /* or what else the kind of event is about */
    uint8_t stage;   /* of the message, that its first byte reaches; 0 starts it */
} event;

enum { EVENT_BUCKETS = 64 };

typedef struct {
    struct event_bucket {
        event *items;
        size_t count, room;
        double first_seconds;
    } buckets[EVENT_BUCKETS];
    uint64_t filled; /* bits: which buckets have events */
    size_t taken;    /* of bucket 0 */
    double last_seconds;
} events;

/* Adds an event that is not before the one that was taken last. Returns 0 if memory runs out. */
int play_events_add(events *to, event added);
/* The time of the first event, infinite if there is none. */
double play_events_first_seconds(const events *of);
/* Takes the first event into `taken`. Returns 0 if memory runs out. */
int play_events_take(events *from, event *taken);
void play_events_free(events *of);

#endif
