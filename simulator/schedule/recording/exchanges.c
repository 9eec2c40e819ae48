/* Processes tell one another while they are recorded: data of the program's own, and how they split communicators.
 *
 * A process that needs what another one has not told yet is abandoned, and recorded again from its start when that is
 * there. In each attempt it does the same, so that what it tells counts once. */
#include "recording.h"

#include <stdlib.h>
#include <string.h>

void recording_queue(recording *to, int rank) {
    exchange *of = &to->exchanges[rank];
    if (of->is_queued || of->is_recorded) {
        return;
    }
    of->is_queued = 1;
    to->queue[(to->queue_first + to->queue_length++) % to->made->procs] = rank;
}

int recording_next(recording *to) {
    if (to->queue_length == 0) {
        return NOBODY;
    }
    int rank = to->queue[to->queue_first];
    to->queue_first = (to->queue_first + 1) % to->made->procs;
    to->queue_length--;
    to->exchanges[rank].is_queued = 0;
    return rank;
}

void recording_begin_attempt(recording *to) {
    for (own_data *item = to->exchanges[to->now.rank].first; item != NULL; item = item->next) {
        item->is_taken = 0;
    }
}

/* The process needs something that is not there. */
static _Noreturn void await_others(recording *to) {
    if (to->stops) {
        recording_cut(to);
    }
    to->now.is_abandoned = 1;
    longjmp(to->now.ends, 1);
}

void recording_deposit(const void *data, size_t bytes, int destination) {
    recording *to = recording_now;
    recording_require_others(to);
    exchange *from = &to->exchanges[to->now.rank], *at = &to->exchanges[destination];
    if (++to->now.sent <= from->sent) {
        return;
    }
    own_data *item = recording_checked(malloc(sizeof *item + bytes));
    *item = (own_data){.source = to->now.rank, .bytes = bytes};
    memcpy(item->data, data, bytes);
    *(at->first == NULL ? &at->first : &at->last->next) = item;
    at->last = item;
    from->sent++;
    recording_queue(to, destination);
}

void recording_collect(void *data, size_t bytes, int source) {
    recording *to = recording_now;
    recording_require_others(to);
    own_data *item = to->exchanges[to->now.rank].first;
    while (item != NULL && (item->is_taken || item->source != source)) {
        item = item->next;
    }
    if (item == NULL && !to->exchanges[source].is_recorded) {
        await_others(to);
    }
    if (item == NULL && to->max_words > 0) {
        recording_cut(to);
    }
    if (item == NULL || item->bytes != bytes) {
        recording_fail(to, "process %d's control flow depends on data of process %d that it does not have yet",
                       to->now.rank, source);
    }
    memcpy(data, item->data, bytes);
    item->is_taken = 1;
}

MPI_Comm recording_split(recording *to, MPI_Comm comm, int colour, int key) {
    recording_require_others(to);
    recording_make_communicators(to);
    exchange *of = &to->exchanges[to->now.rank];
    int rank = recording_rank_in(comm), size = recording_communicators_size(to->communicators, comm);
    size_t number = to->now.splits++;
    if (number == of->splits) {
        of->parts = recording_grown(of->parts, of->splits, &of->split_room, sizeof *of->parts);
        of->parts[of->splits++] = COMMUNICATORS_UNKNOWN;
        if (!recording_communicators_divide(to->communicators, comm, rank, colour, MPI_UNDEFINED, key)) {
            recording_fail(to, "out of memory");
        }
    }
    if (of->parts[number] == COMMUNICATORS_UNKNOWN) {
        of->parts[number] = recording_communicators_part(to->communicators, comm, rank);
        for (int other = 0; of->parts[number] != COMMUNICATORS_UNKNOWN && other < size; other++) {
            recording_queue(to, recording_communicators_member(to->communicators, comm, other));
        }
    }
    if (of->parts[number] == COMMUNICATORS_UNKNOWN) {
        await_others(to);
    }
    return of->parts[number];
}

void recording_free_exchanges(recording *to) {
    for (int rank = 0; to->exchanges != NULL && rank < to->wanted->procs; rank++) {
        exchange *of = &to->exchanges[rank];
        while (of->first != NULL) {
            own_data *next = of->first->next;
            free(of->first);
            of->first = next;
        }
        free(of->parts);
    }
    free(to->exchanges);
    free(to->queue);
}
