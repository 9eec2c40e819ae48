/* Requests by the time at which they are complete. */
#include "play.h"

/* The number of items from the first one on that are in order. */
static size_t run_length(const moment *items, size_t count) {
    size_t length = 1;
    while (length < count && items[length - 1].seconds <= items[length].seconds) {
        length++;
    }
    return length;
}

/* Requests that are completed together are mostly in order already, so runs are merged two by two. */
moment *play_sort(moment *items, moment *other, size_t count) {
    while (run_length(items, count) < count) {
        for (size_t done = 0; done < count;) {
            size_t left = done, middle = left + run_length(items + left, count - left);
            size_t right = middle, end = right + (right < count ? run_length(items + right, count - right) : 0);
            while (left < middle || right < end) {
                int takes_right = left == middle || (right < end && items[right].seconds < items[left].seconds);
                other[done++] = items[takes_right ? right++ : left++];
            }
        }
        moment *sorted = other;
        other = items;
        items = sorted;
    }
    return items;
}
