#include "batch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The columns of one schedule's sizes, gathered from the network's tables into memory that is used again. */
typedef struct {
    const schedule *played;
    const uint32_t *column_of;
    size_t columns;
    double *memory;
    size_t used;
} gathering;

/* Rows of a table with a column for each size. NULL stays NULL. */
static const double *gathered(gathering *from, const double *table, size_t rows) {
    if (table == NULL) {
        return NULL;
    }
    double *start = from->memory + from->used;
    size_t sizes = from->played->size_count;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < sizes; i++) {
            start[row * sizes + i] = table[row * from->columns + from->column_of[i]];
        }
    }
    from->used += rows * sizes;
    return start;
}

enum { TABLES_BY_SIZE = SCHEDULE_LOCAL_KINDS + 4, TABLES_BY_CLASS = 8, TABLES_BY_PAIR = 5 };

static schedule_network tables_of(gathering *from, const schedule_network *network, uint8_t *protocol) {
    size_t classes = (size_t)network->classes, pairs = classes * classes;
    schedule_network own = *network;
    for (int kind = 0; kind < SCHEDULE_LOCAL_KINDS; kind++) {
        own.local_seconds[kind] = gathered(from, network->local_seconds[kind], 1);
    }
    own.load_bytes = gathered(from, network->load_bytes, 1);
    own.latency_factor = gathered(from, network->latency_factor, 1);
    own.handshake_factor = gathered(from, network->handshake_factor, 1);
    own.answer_factor = gathered(from, network->answer_factor, 1);
    own.send_seconds = gathered(from, network->send_seconds, classes);
    own.start_seconds = gathered(from, network->start_seconds, classes);
    own.receive_seconds = gathered(from, network->receive_seconds, classes);
    own.receive_gap_seconds = gathered(from, network->receive_gap_seconds, classes);
    own.local_latency_seconds = gathered(from, network->local_latency_seconds, classes);
    own.local_transfer_seconds = gathered(from, network->local_transfer_seconds, classes);
    own.cross_latency_seconds = gathered(from, network->cross_latency_seconds, classes);
    own.cross_transfer_seconds = gathered(from, network->cross_transfer_seconds, classes);
    own.handshake_seconds = gathered(from, network->handshake_seconds, pairs);
    own.answer_seconds = gathered(from, network->answer_seconds, pairs);
    own.latency_seconds = gathered(from, network->latency_seconds, pairs);
    own.transfer_seconds = gathered(from, network->transfer_seconds, pairs);
    own.gap_seconds = gathered(from, network->gap_seconds, pairs);
    for (size_t i = 0; i < from->played->size_count; i++) {
        protocol[i] = network->protocol[from->column_of[i]];
    }
    own.protocol = protocol;
    return own;
}

void schedule_play_batch(size_t count, const schedule *const *played, const uint32_t *const *column_of,
                         const schedule_network *network, size_t columns, const double *max_seconds, double *seconds,
                         char *problem, size_t problem_bytes) {
    size_t sizes = 0, classes = (size_t)network->classes;
    for (size_t i = 0; i < count; i++) {
        sizes = played[i]->size_count > sizes ? played[i]->size_count : sizes;
        seconds[i] = NAN;
    }
    size_t rows = TABLES_BY_SIZE + TABLES_BY_CLASS * classes + TABLES_BY_PAIR * classes * classes;
    double *memory = malloc((rows * sizes + 1) * sizeof *memory);
    uint8_t *protocol = malloc(sizes + 1);
    if (memory == NULL || protocol == NULL) {
        snprintf(problem, problem_bytes, "out of memory");
        count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        gathering from = {played[i], column_of[i], columns, memory, 0};
        schedule_network own = tables_of(&from, network, protocol);
        schedule_result result = schedule_play_within(played[i], &own, 0, NULL, max_seconds[i]);
        if (!result.failed) {
            seconds[i] = result.is_longer ? INFINITY : result.seconds;
        } else if (problem[0] == '\0') {
            snprintf(problem, problem_bytes, "%s", result.problem);
        }
    }
    free(memory);
    free(protocol);
}
