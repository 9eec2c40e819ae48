/* Processes that wait for others, on stacks of their own.
 *
 * A process that splits a communicator has to know what the other members ask for. From the first split on the others
 * therefore run on stacks of their own, one at a time: each goes on until it waits for others, and the process that
 * split first resumes them by turns. Processes of algorithms that split nothing need no stacks.
 *
 * A stack is entered by swapcontext, which makes system calls, and from then on by longjmp, which makes none. */
#undef _FORTIFY_SOURCE /* with it longjmp refuses to go to another stack */
#include "recording.h"

#include <stdlib.h>
#include <sys/mman.h>

static void run_fiber(void) {
    recording_process(recording_now, recording_now->running->rank);
    recording_now->idle++;
    recording_leave_fiber(recording_now);
}

_Noreturn void recording_leave_fiber(recording *to) { longjmp(to->resumes, 1); }

/* Goes on with a fiber. Returns when something goes on from `here`. */
static void go_to(fiber *next, jmp_buf here) {
    if (setjmp(here) != 0) {
        return;
    }
    if (next->has_begun) {
        longjmp(next->goes_on, 1);
    }
    next->has_begun = 1;
    ucontext_t left; /* never used: AddressSanitizer knows swapcontext, and not setcontext */
    swapcontext(&left, &next->begins);
}

/* Goes on with what resumed the fibers, until something goes on with this one. */
static void leave_for_now(recording *to, fiber *left) {
    if (setjmp(left->goes_on) == 0) {
        recording_leave_fiber(to);
    }
}

/* Gives a stack to each process that has not begun. */
void recording_make_fibers(recording *to) {
    size_t count = 0;
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
            fiber *made = &to->fibers[i];
            made->rank = rank;
            getcontext(&made->begins);
            made->begins.uc_stack.ss_sp = to->stacks + (size_t)i * STACK_BYTES;
            made->begins.uc_stack.ss_size = STACK_BYTES - (size_t)(i % STACK_PLACES) * STACK_STEP_BYTES;
            makecontext(&made->begins, run_fiber, 0);
            i++;
        }
    }
}

static void resume(recording *to, fiber *resumed) {
    process *now = to->now;
    to->running = resumed;
    go_to(resumed, to->resumes);
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
    int rank = to->arrivals == NULL ? -1 : arrivals_next(to->arrivals);
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
    if (to->most_words == 0) {
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

/* Lets the process go on whose messages arrive next, from a fiber that awaits its own, as all others do. Returns
 * whether this fiber goes on; if not the process that is no fiber does. */
static int pass_on(recording *to) {
    fiber *waiting = to->running;
    while (to->idle == to->fiber_count && !to->stops) {
        int rank = arrivals_next(to->arrivals);
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
            to->running = next;
            go_to(next, waiting->goes_on);
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
    if (to->arrivals != NULL || to->fibers == NULL) {
        return;
    }
    to->fiber_of = recording_checked(calloc((size_t)to->made->procs, sizeof *to->fiber_of));
    for (size_t i = 0; i < to->fiber_count; i++) {
        to->fiber_of[to->fibers[i].rank] = &to->fibers[i];
    }
    to->arrivals = recording_checked(
        arrivals_make(to->made->procs, to->nodes == NULL ? NULL : to->nodes->node_of, to->wanted->proportions));
}

/* The process goes on when it has reduced so many bytes. */
void recording_reduce(uint64_t bytes) {
    recording *to = recording_now;
    if (to->arrivals == NULL) {
        return;
    }
    if (!arrivals_reduce(to->arrivals, to->now->rank, bytes)) {
        recording_fail(to, "out of memory");
    }
    while (arrivals_is_reducing(to->arrivals, to->now->rank)) {
        recording_wait_for_messages(to);
    }
}

void recording_post(int is_send, int source, int destination, uint64_t bytes, int64_t request) {
    if (recording_now->arrivals == NULL) {
        return;
    }
    arrivals_side side = {
        .source = source, .destination = destination, .is_send = is_send, .bytes = bytes, .request = request};
    if (!arrivals_post(recording_now->arrivals, &side)) {
        recording_fail(recording_now, "out of memory");
    }
}
