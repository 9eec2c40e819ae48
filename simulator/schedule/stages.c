#include "stages.h"

#include <stdlib.h>

/* --- The messages of a stage -------------------------------------------------------------------------------------- */

static void push_on_heap(play *all, served *of, key added) {
    of->heap = play_grown(all, of->heap, of->heap_count, &of->heap_room, sizeof *of->heap);
    size_t place = of->heap_count++;
    for (; place > 0 && added < of->heap[(place - 1) / 2]; place = (place - 1) / 2) {
        of->heap[place] = of->heap[(place - 1) / 2];
    }
    of->heap[place] = added;
}

static key pop_from_heap(served *of) {
    key first = of->heap[0], moved = of->heap[--of->heap_count];
    size_t place = 0;
    for (size_t child = 1; child < of->heap_count; child = 2 * place + 1) {
        child += child + 1 < of->heap_count && of->heap[child + 1] < of->heap[child];
        if (of->heap[child] > moved) {
            break;
        }
        of->heap[place] = of->heap[child];
        place = child;
    }
    of->heap[place] = moved;
    return first;
}

/* The first keys are not the queue's own. */
static int has_first_keys(const served *of) { return of->queue_room == SERVED_FIRST; }

static void make_queue_room(play *all, served *of) {
    key *first = has_first_keys(of) ? of->queue : NULL;
    of->queue = play_grown(all, first == NULL ? of->queue : NULL, of->end, &of->queue_room, sizeof *of->queue);
    if (first != NULL) {
        memcpy(of->queue, first, of->end * sizeof *first);
    }
}

void served_push(play *all, served *of, key added) {
    if (of->first == of->end) {
        of->first = of->end = 0;
    } else if (added < of->queue[of->end - 1]) {
        push_on_heap(all, of, added);
        return;
    } else if (of->end == of->queue_room && 2 * of->first >= of->end) {
        of->end -= of->first;
        memcpy(of->queue, of->queue + of->first, of->end * sizeof *of->queue);
        of->first = 0;
    }
    if (of->end == of->queue_room) {
        make_queue_room(all, of);
    }
    of->queue[of->end++] = added;
}

key served_pop(served *of) { return served_is_in_queue(of) ? of->queue[of->first++] : pop_from_heap(of); }

void served_free(served *of) {
    if (!has_first_keys(of)) {
        free(of->queue);
    }
    free(of->heap);
}

/* --- Busy stages -------------------------------------------------------------------------------------------------- */

static void put_stage(busy_stages *to, size_t place, key one) {
    to->keys[place] = one;
    to->place_of[(uint32_t)one] = (int32_t)place;
}

/* Of the heap, below each place. */
enum { BRANCHES = 4 };

/* Moves a stage, from where there is a gap at `place`, to where it belongs. */
static void settle_at(busy_stages *to, size_t place, key one) {
    for (; place > 0 && one < to->keys[(place - 1) / BRANCHES]; place = (place - 1) / BRANCHES) {
        put_stage(to, place, to->keys[(place - 1) / BRANCHES]);
    }
    for (size_t child = BRANCHES * place + 1; child < to->count; child = BRANCHES * place + 1) {
        size_t end = child + BRANCHES < to->count ? child + BRANCHES : to->count;
        for (size_t other = child + 1; other < end; other++) {
            child = to->keys[other] < to->keys[child] ? other : child;
        }
        if (to->keys[child] > one) {
            break;
        }
        put_stage(to, place, to->keys[child]);
        place = child;
    }
    put_stage(to, place, one);
}

void busy_settle(busy_stages *to, int32_t number, int is_busy, double next_seconds) {
    int32_t place = to->place_of[number];
    if (is_busy) {
        settle_at(to, place == NONE ? to->count++ : (size_t)place, key_make(next_seconds, (uint32_t)number));
    } else if (place != NONE) {
        to->place_of[number] = NONE;
        if ((size_t)place < --to->count) {
            settle_at(to, (size_t)place, to->keys[to->count]);
        }
    }
}
