/* Operations of rounds (tasks.h) that a process does at once: each is a strand, which goes on when its messages have
 * arrived, whatever the network. */
#include "recording.h"

/* Nothing is started before all operations are known that are waited for together. */
void collwise_rounds_start(collwise_rounds *of) { (void)of; }

static void record_rounds(collwise_rounds *of) {
    while (collwise_rounds_next(of)) {
        collwise_wait(&of->requests);
        if (of->poll != NULL) {
            of->poll(of->state); /* is over at once: what it waits for is recorded */
            of->poll = NULL;
        }
    }
    recording_add_copies();
}

static int is_empty(const collwise_rounds *of) { return of->count == 0; }

static uint32_t length_since(size_t place) { return (uint32_t)(recording_now->now.length - place - 1); }

/* Appends a strand, unless it does nothing. Returns the most requests that it makes between waits. */
static uint32_t record_strand(collwise_rounds *of, uint32_t *strands) {
    process *now = &recording_now->now;
    size_t place = now->length;
    now->in_strand = 0;
    recording_add(SCHEDULE_STRAND, 0, 0);
    record_rounds(of);
    if (now->length == place + 1) {
        now->length = place;
        return 0;
    }
    now->words[place] = schedule_make_word(SCHEDULE_STRAND, now->in_strand, length_since(place));
    (*strands)++;
    return now->in_strand;
}

void collwise_rounds_wait(collwise_rounds *const *list, int count) {
    process *now = &recording_now->now;
    int several = 0;
    for (int i = 0; i < count; i++) {
        several += !is_empty(list[i]);
    }
    if (several < 2) {
        for (int i = 0; i < count; i++) {
            record_rounds(list[i]);
        }
        return;
    }
    recording_add_copies();
    int64_t requests_before = now->requests;
    uint32_t strands = 0, requests = 0;
    size_t place = now->length;
    now->fork = place + 1;
    recording_add(SCHEDULE_FORK, 0, 0);
    for (int i = 0; i < count; i++) {
        requests += record_strand(list[i], &strands);
    }
    now->words[place] = schedule_make_word(SCHEDULE_FORK, strands, length_since(place));
    now->length = strands == 0 ? place : now->length;
    now->fork = 0;
    now->requests = requests_before;
    now->strands = strands > now->strands ? strands : now->strands;
    now->strand_requests = requests > now->strand_requests ? requests : now->strand_requests;
}
