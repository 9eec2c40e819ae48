/* The comparisons that decided the times of a play, by entity (pipelines.py). */
#include "play.h"

#include <stdlib.h>

void play_note_comparison(play *all, compared what, size_t number, uint32_t detail, double one, double other) {
    size_t procs = (size_t)all->procs, connections = all->connection_count;
    size_t before = 0;
    if (what >= COMPARED_PORT) {
        before = procs;
    }
    if (what >= COMPARED_RECEIVE) {
        before = 2 * procs + (size_t)(what - COMPARED_RECEIVE) * connections;
    }
    if (what >= COMPARED_TURN) {
        before = 2 * procs + 3 * connections + (size_t)(what - COMPARED_TURN) * COMPARED_STAGES * connections;
    }
    if (what >= COMPARED_EVENT) {
        before = 2 * procs + (size_t)(3 + 2 * COMPARED_STAGES) * connections;
    }
    schedule_log *log = all->log;
    log->items = play_grown(all, log->items, log->count, &log->room, sizeof *log->items);
    log->items[log->count++] =
        (schedule_comparison){one, other, (uint32_t)(before + number), (uint32_t)what << 28 ^ detail};
}

void play_sort_comparisons(play *all) {
    schedule_log *log = all->log;
    size_t entities = 0;
    for (size_t i = 0; i < log->count; i++) {
        entities = log->items[i].entity >= entities ? (size_t)log->items[i].entity + 1 : entities;
    }
    size_t *place = play_checked(all, calloc(entities + 1, sizeof *place));
    schedule_comparison *sorted = malloc((log->count + 1) * sizeof *sorted);
    for (size_t i = 0; i < log->count; i++) {
        place[log->items[i].entity + 1]++;
    }
    for (size_t i = 1; i < entities; i++) {
        place[i] += place[i - 1];
    }
    for (size_t i = 0; sorted != NULL && i < log->count; i++) {
        sorted[place[log->items[i].entity]++] = log->items[i];
    }
    free(place);
    schedule_comparison *unsorted = log->items;
    log->items = sorted != NULL ? sorted : unsorted;
    play_checked(all, sorted);
    free(unsorted);
}

void schedule_log_free(schedule_log *log) {
    free(log->items);
    *log = (schedule_log){0};
}
