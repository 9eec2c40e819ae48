/* A process with several strands takes their requests in the order in which they are complete, however late its clock
 * is, and goes on with a strand when it has taken all that this one waits for. It takes a request only when time has
 * come so far that no other one can be complete before: over ports in an event, under models when no process can do
 * more before that time. */
#include "strands.h"
#include "messages.h"

#include <stdlib.h>

/* A strand waits for what it has started. */
static void open_requests(play *all, int rank, strand *of) {
    process *now = &all->processes[rank];
    for (uint32_t slot = of->first_slot; slot < of->first_slot + of->made; slot++) {
        request *one = &now->requests[slot];
        one->is_awaited = one->seconds == INFINITY;
        of->open += one->seconds != COMPLETE_AT_ONCE;
        if (!one->is_awaited && one->seconds != COMPLETE_AT_ONCE) {
            play_add_complete(all, rank, (moment){one->seconds, slot});
        }
    }
    of->made = 0;
}

/* Goes on with a strand to its next wait or its end. Returns 0 if it has to be called again: the process is at work. */
static int go_on_to_wait(play *all, int rank, strand *of) {
    const schedule_word *words = all->processes[rank].program->words;
    while (of->at < of->end) {
        schedule_word word = words[of->at++];
        if (schedule_kind_of(word) == SCHEDULE_WAIT) {
            open_requests(all, rank, of);
            return 1;
        }
        if (schedule_is_local(schedule_kind_of(word))) {
            if (!play_work(all, rank, word)) {
                return 0;
            }
        } else if (schedule_kind_of(word) == SCHEDULE_TELL) {
            play_tell(all, rank, word);
        } else {
            play_post(all, rank, word, of->first_slot + of->made++);
        }
    }
    return 1;
}

/* Goes on with a strand, whose wait is over, until it has to wait or is over. Returns the same. */
static int go_on_with(play *all, int rank, strand *of) {
    while (of->open == 0 && of->at < of->end) {
        if (!go_on_to_wait(all, rank, of)) {
            return 0;
        }
    }
    all->processes[rank].strands->left -= of->open == 0;
    return 1;
}

/* The strands of a fork begin: all start what they do first, then those go on that need not wait. Returns 1 if all are
 * over. */
static int begin_strands(play *all, int rank) {
    strands *of = all->processes[rank].strands;
    while (of->begun < 2 * of->count) {
        strand *one = &of->list[of->begun % of->count];
        int goes_on = of->begun < of->count ? go_on_to_wait(all, rank, one) : go_on_with(all, rank, one);
        of->is_working = !goes_on;
        if (of->is_working) {
            return 0;
        }
        of->begun++;
    }
    return of->left == 0;
}

int play_begin_fork(play *all, int rank, uint32_t count) {
    const process *now = &all->processes[rank];
    strands *of = now->strands;
    size_t at = now->at + 1;
    uint32_t slot = now->mask + 2;
    of->count = of->left = count;
    of->begun = 0;
    of->latest_seconds = 0;
    for (uint32_t i = 0; i < count; i++) {
        schedule_word head = now->program->words[at++];
        of->list[i] = (strand){.at = at, .end = at + schedule_size_of(head), .first_slot = slot};
        slot += schedule_peer_of(head);
        at += schedule_size_of(head);
    }
    return begin_strands(all, rank);
}

/* The process goes on with a strand, and takes what is complete meanwhile. Returns 1 if all are over. */
static int go_on_in_fork(play *all, int rank, uint32_t which) {
    strands *of = all->processes[rank].strands;
    of->current = which;
    of->is_working = !go_on_with(all, rank, &of->list[which]);
    return of->left == 0;
}

int play_go_on_after_work(play *all, int rank) {
    strands *of = all->processes[rank].strands;
    play_end_work(all, rank);
    int are_over = of->begun < 2 * of->count ? begin_strands(all, rank) : go_on_in_fork(all, rank, of->current);
    if (!of->is_working && of->first < of->end) {
        play_plan_fork(all, rank);
    }
    return are_over;
}

static uint32_t strand_of(const strands *of, uint32_t slot) {
    uint32_t i = of->count - 1;
    while (slot < of->list[i].first_slot) {
        i--;
    }
    return i;
}

int play_fork_goes_on(play *all, int rank, double seconds) {
    process *now = &all->processes[rank];
    strands *of = now->strands;
    if (of->first == of->end || of->next_seconds != seconds || of->is_working) {
        return 0; /* something else was complete before this, or the process cannot take it yet */
    }
    moment next = of->complete[of->first++];
    const request *taken = &now->requests[next.number];
    uint32_t on = strand_of(of, next.number);
    play_compare(all, COMPARED_ORDER, (size_t)rank, taken->size, of->latest_seconds, next.seconds);
    of->latest_seconds = next.seconds;
    if (of->first < of->end) {
        play_plan_fork(all, rank);
    }
    play_take(all, rank, taken);
    if (--of->list[on].open == 0) {
        go_on_in_fork(all, rank, on);
    }
    return of->left == 0;
}

void play_make_strands(play *all) {
    size_t forking = 0, count = 0, requests = 0;
    for (int rank = 0; rank < all->procs; rank++) {
        const schedule_program *program = all->processes[rank].program;
        forking += program->strands > 0;
        count += program->strands;
        requests += program->strand_requests;
    }
    all->strands = play_checked(all, calloc(forking + 1, sizeof *all->strands));
    all->each_strand = play_checked(all, malloc((count + 1) * sizeof *all->each_strand));
    all->complete = play_checked(all, malloc((requests + 1) * sizeof *all->complete));
    strands *next = all->strands;
    for (int rank = 0; rank < all->procs; rank++) {
        const schedule_program *program = all->processes[rank].program;
        if (program->strands > 0) {
            count -= program->strands;
            requests -= program->strand_requests;
            *next = (strands){.list = all->each_strand + count,
                              .complete = all->complete + requests,
                              .room = program->strand_requests};
            all->processes[rank].strands = next++;
        }
    }
}
