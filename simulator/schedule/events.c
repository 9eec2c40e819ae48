#include "events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Times are not negative, so that their bits have their order. */
static uint64_t bits_of(double seconds) {
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    return bits;
}

int play_events_add(events *to, event added) {
    uint64_t different = bits_of(added.seconds) ^ bits_of(to->last_seconds);
    int number = different == 0 ? 0 : 64 - __builtin_clzll(different);
    struct event_bucket *bucket = &to->buckets[number];
    if (bucket->count == bucket->room) {
        size_t room = bucket->room == 0 ? 16 : 2 * bucket->room;
        event *grown = realloc(bucket->items, room * sizeof *grown);
        if (grown == NULL) {
            return 0;
        }
        bucket->items = grown;
        bucket->room = room;
    }
    if (bucket->count == 0 || added.seconds < bucket->first_seconds) {
        bucket->first_seconds = added.seconds;
    }
    bucket->items[bucket->count++] = added;
    to->filled |= (uint64_t)1 << number;
    return 1;
}

double play_events_first_seconds(const events *of) {
    return of->filled == 0 ? INFINITY : of->buckets[__builtin_ctzll(of->filled)].first_seconds;
}

int play_events_take(events *from, event *taken) {
    int number = __builtin_ctzll(from->filled);
    struct event_bucket *bucket = &from->buckets[number], *now = &from->buckets[0];
    if (number > 0) {
        size_t count = bucket->count;
        from->last_seconds = bucket->first_seconds;
        from->filled &= ~((uint64_t)1 << number);
        bucket->count = 0;
        for (size_t i = 0; i < count; i++) {
            if (!play_events_add(from, bucket->items[i])) {
                return 0;
            }
        }
    }
    *taken = now->items[from->taken++];
    if (from->taken == now->count) {
        now->count = from->taken = 0;
        from->filled &= ~(uint64_t)1;
    }
    return 1;
}

void play_events_free(events *of) {
    for (int i = 0; i < EVENT_BUCKETS; i++) {
        free(of->buckets[i].items);
    }
}
