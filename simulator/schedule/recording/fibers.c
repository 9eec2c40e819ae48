/* Processes that wait for others, on stacks of their own.
 *
 * A process that splits a communicator has to know what the other members ask for, and one that takes what comes first
 * which message that is. From the first such process on the others therefore run on stacks of their own, one at a time:
 * each goes on until it waits for others, and the process that was first resumes them by turns. Processes of other
 * algorithms need no stacks: the communicators of nodes and of their leaders are known without a split (runtime.c).
 *
 * A stack is entered by swapcontext, which makes system calls, and from then on by longjmp, which makes none. */
#undef _FORTIFY_SOURCE /* with it longjmp refuses to go to another stack */
#include "recording.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Stacks begin in pages and at places that differ, so that they do not compete for the same lines of caches, but near
 * the end of a page, which then has all that most processes use. */
enum { PAGE_BYTES = 4096, PAGES = 32, PLACE_BYTES = 640, PLACES = 3 };

/* The bytes of its stack that a waiting process uses when it goes on: from the frame in which it waits to those of its
 * algorithm. */
enum { LINE_BYTES = 64, IN_USE_BYTES = 1024 };

static void run_fiber(void) {
    recording_process(recording_now, recording_now->running->rank);
    recording_now->idle++;
    recording_leave_fiber(recording_now);
}

_Noreturn void recording_leave_fiber(recording *to) { longjmp(to->resumes, 1); }

static void begin(recording *to, fiber *next) {
    size_t number = (size_t)(next - to->fibers);
    getcontext(&to->begins);
    to->begins.uc_stack.ss_sp = to->stacks + number * STACK_BYTES;
    to->begins.uc_stack.ss_size = STACK_BYTES - number % PAGES * PAGE_BYTES - number % PLACES * PLACE_BYTES;
    makecontext(&to->begins, run_fiber, 0);
    next->has_begun = 1;
    swapcontext(&to->left, &to->begins);
}

/* Goes on with a fiber. Returns when something goes on from `here`. */
static void go_to(recording *to, fiber *next, jmp_buf here) {
    if (setjmp(here) != 0) {
        return;
    }
    if (next->has_begun) {
        longjmp(next->goes_on, 1);
    }
    begin(to, next);
}

/* Goes on with what resumed the fibers, until something goes on with this one. */
static void leave_for_now(recording *to, fiber *left) {
    if (setjmp(left->goes_on) == 0) {
        recording_leave_fiber(to);
    }
}

void recording_make_fibers(recording *to) {
    size_t count = 0;
    if (to->fibers != NULL) {
        return;
    }
    for (int rank = 0; rank < to->made->procs; rank++) {
        count += to->progress_of[rank] == NOT_YET;
    }
    to->fibers = recording_checked(calloc(count + 1, sizeof *to->fibers));
    void *stacks = mmap(NULL, (count + 1) * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    to->stacks = recording_checked(stacks == MAP_FAILED ? NULL : stacks);
    to->fiber_count = count;
    for (int rank = 0, i = 0; rank < to->made->procs; rank++) {
        if (to->progress_of[rank] == NOT_YET) {
            to->fibers[i++].rank = rank;
        }
    }
}

static void resume(recording *to, fiber *resumed) {
    process *now = to->now;
    to->running = resumed;
    go_to(to, resumed, to->resumes);
    to->running = NULL;
    if (to->has_failed) {
        longjmp(to->give_up, 1);
    }
    to->now = now;
}

/* Lets each fiber go on until it waits that is not done and does not await messages. Returns whether that changed
 * anything. */
static int resume_fibers(recording *to) {
    uint64_t changes = to->changes;
    for (size_t i = 0; (to->idle < to->fiber_count || to->stops) && i < to->fiber_count; i++) {
        if (to->progress_of[to->fibers[i].rank] != RECORDED && (!to->fibers[i].awaits_messages || to->stops)) {
            resume(to, &to->fibers[i]);
        }
    }
    return to->changes > changes;
}

/* Lets the process go on whose messages arrive next. Returns 0 if none are under way. */
static int resume_next(recording *to) {
    int rank = to->arrivals == NULL ? -1 : recording_arrivals_next(to->arrivals);
    fiber *found = rank < 0 ? NULL : to->fiber_of[rank];
    if (found != NULL && found->awaits_messages) {
        resume(to, found);
    }
    return rank >= 0;
}

/* Lets processes go on. If none can, they wait for ever, or for one that was cut. */
static void resume_any(recording *to, int waiting) {
    if (resume_fibers(to) || resume_next(to)) {
        return;
    }
    if (to->max_words == 0) {
        recording_fail(
            to, "process %d waits for ever for processes that do not split a communicator with it or send it nothing",
            waiting);
    }
    to->stops = 1;
}

/* The process can go on only after something has changed. */
void recording_wait_for_others(recording *to) {
    if (to->running != NULL) {
        process *now = to->now;
        leave_for_now(to, to->running);
        to->now = now;
    } else {
        resume_any(to, to->now->rank);
    }
    if (to->stops) {
        recording_cut(to);
    }
}

/* Fetches what the process needs that will probably go on after the next one: it was last used many processes ago. */
static void prefetch_after_next(const recording *to) {
    int rank = recording_arrivals_after_next(to->arrivals);
    const fiber *waiting = rank < 0 ? NULL : to->fiber_of[rank];
    if (waiting == NULL || waiting->frame == NULL) {
        return;
    }
    const char *goes_on = (const char *)waiting->goes_on;
    for (size_t at = 0; at < sizeof waiting->goes_on; at += LINE_BYTES) {
        __builtin_prefetch(goes_on + at);
    }
    for (size_t at = 0; at < IN_USE_BYTES; at += LINE_BYTES) {
        __builtin_prefetch(waiting->frame + at);
    }
}

/* Lets the process go on whose messages arrive next, from a fiber that awaits its own, as all others do. Returns
 * whether this fiber goes on; if not the process that is no fiber does. */
static int pass_on(recording *to) {
    fiber *waiting = to->running;
    while (to->idle == to->fiber_count && !to->stops) {
        int rank = recording_arrivals_next(to->arrivals);
        fiber *next = rank < 0 ? NULL : to->fiber_of[rank];
        if (next == waiting) {
            return 1;
        }
        if (next == NULL && (rank < 0 || to->progress_of[rank] == UNDER_WAY)) {
            to->changes++;
            return 0;
        }
        if (next != NULL && next->awaits_messages) {
            process *now = to->now;
            prefetch_after_next(to);
            waiting->frame = __builtin_frame_address(0);
            to->running = next;
            go_to(to, next, waiting->goes_on);
            to->now = now;
            return 1;
        }
    }
    return 0;
}

/* The same where only a message can be what has changed. */
void recording_wait_for_messages(recording *to) {
    fiber *running = to->running;
    if (running == NULL) {
        recording_wait_for_others(to);
        return;
    }
    running->awaits_messages = 1;
    to->idle++;
    int goes_on = pass_on(to);
    if (to->stops) {
        recording_cut(to);
    }
    if (!goes_on) {
        recording_wait_for_others(to);
    }
    running->awaits_messages = 0;
    to->idle--;
}

void recording_finish_fibers(recording *to) {
    for (size_t i = 0; i < to->fiber_count; i++) {
        while (to->progress_of[to->fibers[i].rank] != RECORDED) {
            resume_any(to, to->fibers[i].rank);
        }
    }
}

_Noreturn void recording_cut(recording *to) {
    if (to->running != NULL && to->running->awaits_messages) {
        to->running->awaits_messages = 0;
        to->idle--;
    }
    to->now->is_cut = 1;
    longjmp(to->now->ends, 1);
}

/* From now on messages arrive at times of their own. */
void recording_begin_arrivals(recording *to) {
    if (to->arrivals != NULL || to->processes_alone > 0) {
        return;
    }
    recording_make_fibers(to);
    to->fiber_of = recording_checked(calloc((size_t)to->made->procs, sizeof *to->fiber_of));
    for (size_t i = 0; i < to->fiber_count; i++) {
        to->fiber_of[to->fibers[i].rank] = &to->fibers[i];
    }
    to->arrivals = recording_checked(recording_arrivals_make(
        to->made->procs, to->nodes == NULL ? NULL : to->nodes->node_of, to->wanted->proportions));
}

/* The process goes on when it has reduced so many bytes. */
void recording_reduce(uint64_t bytes) {
    recording *to = recording_now;
    if (to->arrivals == NULL) {
        return;
    }
    if (!recording_arrivals_reduce(to->arrivals, to->now->rank, bytes)) {
        recording_fail(to, "out of memory");
    }
    while (recording_arrivals_is_reducing(to->arrivals, to->now->rank)) {
        recording_wait_for_messages(to);
    }
}

void recording_post(int is_send, int source, int destination, uint64_t bytes, int64_t request) {
    if (recording_now->arrivals == NULL) {
        return;
    }
    arrivals_side side = {
        .source = source, .destination = destination, .is_send = is_send, .bytes = bytes, .request = request};
    if (!recording_arrivals_post(recording_now->arrivals, &side)) {
        recording_fail(recording_now, "out of memory");
    }
}
