/* Messages arrive later if they are longer, after what their node sends to others before, sooner within a node, by the
 * proportions of their network, and not before both sides are posted. */
#include "arrivals.h"

#include <stdio.h>

enum { PROCS = 128 };

static int failures;

static void expect(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "%s\n", what);
        failures++;
    }
}

/* Two processes on each node. */
static arrivals *made(int procs, const arrivals_proportions *network) {
    static int node_of[PROCS];
    for (int i = 0; i < PROCS; i++) {
        node_of[i] = i / 2;
    }
    arrivals *of = recording_arrivals_make(procs, node_of, network);
    expect(of != NULL, "no memory");
    return of;
}

static void post(arrivals *of, int is_send, int source, int destination, uint64_t bytes, int64_t request) {
    arrivals_side side = {source, destination, is_send, bytes, request};
    expect(recording_arrivals_post(of, &side), "no memory");
}

static void exchange(arrivals *of, int source, int destination, uint64_t bytes, int64_t request) {
    post(of, 1, source, destination, bytes, -1);
    post(of, 0, source, destination, bytes, request);
}

static void expect_order(arrivals *of, const int *order, int count, const char *what) {
    for (int i = 0; i < count; i++) {
        expect(recording_arrivals_next(of) == order[i], what);
    }
    recording_arrivals_free(of);
}

static int is_complete(const arrivals *of, int process, int64_t request) {
    uint64_t when;
    return recording_arrivals_is_complete(of, process, request, &when);
}

static void test_one_side_waits_for_the_other(void) {
    arrivals *of = made(4, NULL);
    post(of, 0, 0, 2, 8, 0);
    expect(recording_arrivals_next(of) == -1, "a message arrives that was never sent");
    post(of, 1, 0, 2, 8, 5);
    expect(!is_complete(of, 2, 0), "a message takes no time");
    expect(recording_arrivals_next(of) == 0 && is_complete(of, 0, 5), "the sender is not done first");
    expect(!is_complete(of, 2, 0), "a message arrives when it leaves");
    expect(recording_arrivals_next(of) == 2 && is_complete(of, 2, 0), "a message does not arrive");
    expect(recording_arrivals_next(of) == -1, "there is another message");
    recording_arrivals_free(of);
}

static void test_messages_of_a_pair_are_matched_in_order(void) {
    arrivals *of = made(4, NULL);
    for (int64_t i = 0; i < 3; i++) {
        post(of, 1, 0, 2, 8, -1);
    }
    for (int64_t i = 0; i < 3; i++) {
        post(of, 0, 0, 2, 8, i);
    }
    for (int64_t i = 0; i < 3; i++) {
        expect(recording_arrivals_next(of) == 2 && is_complete(of, 2, i) && !is_complete(of, 2, i + 1), "out of order");
    }
    recording_arrivals_free(of);
}

static void test_which_comes_first(void) {
    arrivals *of = made(8, NULL);
    exchange(of, 0, 2, 1 << 20, 0); /* long */
    exchange(of, 4, 3, 1 << 10, 0); /* short */
    exchange(of, 6, 7, 1 << 10, 0); /* short, on one node */
    exchange(of, 0, 5, 1 << 10, 0); /* short, but behind the long one */
    const int order[] = {7, 3, 2, 5};
    expect_order(of, order, 4, "another message comes first");
}

/* Two leaders of a node share its port, processes without nodes share none. */
static void test_processes_of_a_node_share_its_port(void) {
    const int shared[] = {3, 7, 5}, own[] = {3, 5, 7};
    for (int with_nodes = 0; with_nodes < 2; with_nodes++) {
        arrivals *of = with_nodes ? made(8, NULL) : recording_arrivals_make(8, NULL, NULL);
        exchange(of, 0, 3, 5 << 10, 0);
        exchange(of, 1, 5, 6 << 10, 0); /* from the same node */
        exchange(of, 2, 7, 7 << 10, 0); /* from another one */
        expect_order(of, with_nodes ? shared : own, 3, "leaders of a node send side by side, or others do not");
    }
}

/* A short message between nodes, or a long one within a node, comes first as latency and rates say. */
static void test_the_proportions_decide(void) {
    const struct {
        arrivals_proportions network;
        int first;
    } cases[] = {{{.latency_bytes = 1000, .local_share = 0.5}, 1},
                 {{.latency_bytes = 100, .local_share = 0.5}, 3},
                 {{.latency_bytes = 1000, .local_latency_bytes = 1000, .local_share = 0.5}, 3},
                 {{.latency_bytes = 1000, .local_share = 2.0}, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arrivals *of = made(8, &cases[i].network);
        exchange(of, 0, 1, 1500, 0); /* on one node */
        exchange(of, 4, 3, 100, 0);
        expect(recording_arrivals_next(of) == cases[i].first, "the proportions of the network do not count");
        recording_arrivals_free(of);
    }
}

/* A message that is shorter than the reduction comes first. */
static void test_reductions_take_time(void) {
    const arrivals_proportions network = {.latency_bytes = 100, .local_share = 0.5, .reduce_share = 2.0};
    for (uint64_t bytes = 50; bytes <= 200; bytes += 150) {
        arrivals *of = made(8, &network);
        expect(!recording_arrivals_is_reducing(of, 0), "a process reduces that was never told to");
        exchange(of, 4, 3, 100, 0);
        expect(recording_arrivals_reduce(of, 0, bytes) && recording_arrivals_is_reducing(of, 0),
               "a reduction takes no time");
        expect(recording_arrivals_next(of) == (bytes < 100 ? 0 : 3), "a reduction takes another time");
        expect(recording_arrivals_is_reducing(of, 0) == (bytes > 100), "a reduction does not end");
        recording_arrivals_free(of);
    }
    arrivals *of = made(8, NULL);
    expect(recording_arrivals_reduce(of, 0, 1000) && !recording_arrivals_is_reducing(of, 0),
           "reductions take time by default");
    recording_arrivals_free(of);
}

/* The sender of an eager message waits neither for its receive nor for its way; the message waits as the network says.
 */
static void test_eager_messages(void) {
    for (int leaves = 0; leaves < 2; leaves++) {
        const arrivals_proportions network = {.latency_bytes = 10, .eager_bytes = 100, .leaves_at_once = leaves};
        arrivals *of = made(8, &network);
        post(of, 1, 0, 2, 99, 0);
        expect(is_complete(of, 0, 0) && recording_arrivals_next(of) == 0, "the sender of an eager message waits");
        post(of, 1, 0, 4, 100, 1);
        expect(!is_complete(of, 0, 1) && recording_arrivals_next(of) == -1,
               "a long message does not wait for its receive");
        exchange(of, 6, 5, 300, 0);
        expect(recording_arrivals_next(of) == 5, "a message does not arrive");
        post(of, 0, 0, 2, 99, 0);
        expect(is_complete(of, 2, 0) == leaves, "an eager message leaves at another time");
        expect(recording_arrivals_next(of) == 2, "an eager message does not arrive");
        post(of, 0, 0, 4, 100, 0);
        expect(recording_arrivals_next(of) == 0 && is_complete(of, 0, 1) && !is_complete(of, 4, 0),
               "a long message never leaves");
        expect(recording_arrivals_next(of) == 4, "a long message does not arrive");
        recording_arrivals_free(of);
    }
}

static void test_what_was_taken_is_not_told(void) {
    arrivals *of = made(8, NULL);
    exchange(of, 0, 3, 8, 0);
    exchange(of, 4, 3, 8, 1);
    exchange(of, 6, 2, 8, 0);
    expect(recording_arrivals_next(of) == 3 && is_complete(of, 3, 1), "messages of one length do not arrive at once");
    recording_arrivals_take(of, 3, 0);
    recording_arrivals_take(of, 3, 1);
    expect(recording_arrivals_next(of) == 2, "a message that was taken already wakes its process again");
    expect(recording_arrivals_next(of) == -1, "there is another message");
    recording_arrivals_free(of);
}

/* Enough pairs and requests that all lists grow. */
static void test_many(void) {
    arrivals *of = made(PROCS, NULL);
    for (int source = 0; source < PROCS; source++) {
        for (int destination = 0; destination < PROCS; destination++) {
            exchange(of, source, destination, 8, source);
        }
    }
    int found = 0;
    while (recording_arrivals_next(of) >= 0) {
        found++;
    }
    expect(found == PROCS * PROCS, "not all messages arrive");
    for (int destination = 0; destination < PROCS; destination++) {
        for (int source = 0; source < PROCS; source++) {
            expect(is_complete(of, destination, source), "a message has not arrived in the end");
        }
    }
    post(of, 1, 0, 1, 8, -1); /* left unmatched */
    recording_arrivals_free(of);
}

int main(void) {
    test_one_side_waits_for_the_other();
    test_messages_of_a_pair_are_matched_in_order();
    test_which_comes_first();
    test_processes_of_a_node_share_its_port();
    test_the_proportions_decide();
    test_reductions_take_time();
    test_eager_messages();
    test_what_was_taken_is_not_told();
    test_many();
    return failures != 0;
}
