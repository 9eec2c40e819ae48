/* Messages arrive in the order of a usual network: later if they are longer, after what their sender sends before,
 * sooner within a node, and not before both sides are posted. */
#include "arrivals.h"

#include <stdio.h>

static int failures;

static void expect(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "%s\n", what);
        failures++;
    }
}

static void post(arrivals *of, int is_send, int source, int destination, uint64_t bytes, int64_t request) {
    arrivals_side side = {source, destination, is_send, source / 2 == destination / 2, bytes, request};
    expect(arrivals_post(of, &side), "no memory");
}

static void exchange(arrivals *of, int source, int destination, uint64_t bytes, int64_t request) {
    post(of, 1, source, destination, bytes, -1);
    post(of, 0, source, destination, bytes, request);
}

static int is_complete(const arrivals *of, int process, int64_t request) {
    uint64_t when;
    return arrivals_is_complete(of, process, request, &when);
}

static void test_one_side_waits_for_the_other(void) {
    arrivals *of = arrivals_make(4);
    post(of, 0, 0, 2, 8, 0);
    expect(arrivals_next(of) == -1, "a message arrives that was never sent");
    post(of, 1, 0, 2, 8, 5);
    expect(!is_complete(of, 2, 0), "a message takes no time");
    expect(arrivals_next(of) == 0 && is_complete(of, 0, 5), "the sender is not done first");
    expect(!is_complete(of, 2, 0), "a message arrives when it leaves");
    expect(arrivals_next(of) == 2 && is_complete(of, 2, 0), "a message does not arrive");
    expect(arrivals_next(of) == -1, "there is another message");
    arrivals_free(of);
}

static void test_messages_of_a_pair_are_matched_in_order(void) {
    arrivals *of = arrivals_make(4);
    for (int64_t i = 0; i < 3; i++) {
        post(of, 1, 0, 2, 8, -1);
    }
    for (int64_t i = 0; i < 3; i++) {
        post(of, 0, 0, 2, 8, i);
    }
    for (int64_t i = 0; i < 3; i++) {
        expect(arrivals_next(of) == 2 && is_complete(of, 2, i) && !is_complete(of, 2, i + 1), "out of order");
    }
    arrivals_free(of);
}

static void test_which_comes_first(void) {
    arrivals *of = arrivals_make(8);
    exchange(of, 0, 2, 1 << 20, 0); /* long */
    exchange(of, 4, 3, 1 << 10, 0); /* short */
    exchange(of, 6, 7, 1 << 10, 0); /* short, on one node */
    exchange(of, 0, 5, 1 << 10, 0); /* short, but behind the long one */
    const int order[] = {7, 3, 2, 5};
    for (int i = 0; i < 4; i++) {
        expect(arrivals_next(of) == order[i], "another message comes first");
    }
    arrivals_free(of);
}

static void test_what_was_taken_is_not_told(void) {
    arrivals *of = arrivals_make(8);
    exchange(of, 0, 3, 8, 0);
    exchange(of, 4, 3, 8, 1);
    exchange(of, 6, 2, 8, 0);
    expect(arrivals_next(of) == 3 && is_complete(of, 3, 1), "messages of one length do not arrive at once");
    arrivals_take(of, 3, 0);
    arrivals_take(of, 3, 1);
    expect(arrivals_next(of) == 2, "a message that was taken already wakes its process again");
    expect(arrivals_next(of) == -1, "there is another message");
    arrivals_free(of);
}

/* Enough pairs and requests that all lists grow. */
static void test_many(void) {
    enum { PROCS = 128 };
    arrivals *of = arrivals_make(PROCS);
    for (int source = 0; source < PROCS; source++) {
        for (int destination = 0; destination < PROCS; destination++) {
            exchange(of, source, destination, 8, source);
        }
    }
    int found = 0;
    while (arrivals_next(of) >= 0) {
        found++;
    }
    expect(found == PROCS * PROCS, "not all messages arrive");
    for (int destination = 0; destination < PROCS; destination++) {
        for (int source = 0; source < PROCS; source++) {
            expect(is_complete(of, destination, source), "a message has not arrived in the end");
        }
    }
    post(of, 1, 0, 1, 8, -1); /* left unmatched */
    arrivals_free(of);
}

int main(void) {
    test_one_side_waits_for_the_other();
    test_messages_of_a_pair_are_matched_in_order();
    test_which_comes_first();
    test_what_was_taken_is_not_told();
    test_many();
    return failures != 0;
}
