#include "stages.h"

#include <stdlib.h>

/* --- The messages of a stage -------------------------------------------------------------------------------------- */

static key *grown(play *all, key *keys, uint32_t count, uint32_t *room) {
    size_t more = *room;
    keys = play_grown(all, keys, count, &more, sizeof *keys);
    *room = (uint32_t)more;
    return keys;
}

static void push_on_heap(play *all, served *of, key added) {
    of->heap = grown(all, of->heap, of->heap_count, &of->heap_room);
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

static void make_queue_room(play *all, served *of) {
    int is_first = of->queue == &of->first_key;
    of->queue = grown(all, is_first ? NULL : of->queue, of->end, &of->queue_room);
    if (is_first) {
        of->queue[0] = of->first_key;
    }
}

void play_served_push(play *all, served *of, key added) {
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

key play_served_pop(served *of) { return served_is_in_queue(of) ? of->queue[of->first++] : pop_from_heap(of); }

void play_served_free(served *of) {
    if (of->queue != &of->first_key) {
        free(of->queue);
    }
    free(of->heap);
}

/* --- Busy stages -------------------------------------------------------------------------------------------------- */

static void put_stage(busy_stages *to, size_t place, key one) {
    to->keys[place] = one;
    to->place_of[busy_stage(one)] = (int32_t)place;
}

/* The children of each place of the heap. */
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

void play_busy_settle(busy_stages *to, int32_t number, double next_seconds) {
    int32_t place = to->place_of[number];
    settle_at(to, place == NONE ? to->count++ : (size_t)place, key_make(next_seconds, (uint32_t)number));
}

void play_busy_remove(busy_stages *from, int32_t number) {
    int32_t place = from->place_of[number];
    if (place != NONE) {
        from->place_of[number] = NONE;
        if ((size_t)place < --from->count) {
            settle_at(from, (size_t)place, from->keys[from->count]);
        }
    }
}
