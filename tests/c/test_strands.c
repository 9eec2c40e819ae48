/* A process that does two operations at once, recorded once and played on networks on which the one or the other goes
 * on first. Processes 1 and 2 each send process 0 a message, which it reduces and sends back; the reductions follow one
 * another, so that who is first gets its answer a reduction earlier. */
#include "engine.h"
#include "tasks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROCS = 3, BYTES = 800 };

static int failures;

static void expect(int is_right, const char *what, double found) {
    if (!is_right) {
        fprintf(stderr, "%s: %g\n", what, found);
        failures++;
    }
}

static void answer(collwise_rounds *to, char *data, size_t elements, const collwise_operation *op, int sender) {
    collwise_add_receive(to, data, elements * op->element_bytes, sender);
    collwise_add_round(to);
    collwise_add_combine(to, op, data, data, elements, 0);
    collwise_add_send(to, data, elements * op->element_bytes, sender);
}

static void answer_two(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                       collwise_parameters with) {
    int rank;
    (void)with;
    MPI_Comm_rank(comm, &rank);
    if (rank > 0) {
        collwise_send(data, elements * op->element_bytes, 0, comm);
        collwise_receive(data, elements * op->element_bytes, 0, comm);
        return;
    }
    collwise_rounds each[2] = {collwise_rounds_make(comm), collwise_rounds_make(comm)};
    collwise_rounds *const list[] = {&each[0], &each[1]};
    for (int i = 0; i < 2; i++) {
        answer(&each[i], data, elements, op, 1 + i);
        collwise_rounds_start(&each[i]);
    }
    collwise_rounds_wait(list, 2);
    collwise_rounds_free(&each[0]);
    collwise_rounds_free(&each[1]);
}

static schedule *record(void) {
    const collwise_algorithm algorithm = {
        .kind = COLLWISE_ALLREDUCE, .collective = "allreduce", .name = "", .allreduce = answer_two};
    const schedule_case wanted = {
        .experiment = "collective", .collective = "allreduce", .procs = PROCS, .message_bytes = BYTES};
    char problem[200] = "";
    schedule *made = schedule_record_algorithm(&wanted, &algorithm, problem, sizeof problem);
    if (made == NULL) {
        fprintf(stderr, "%s\n", problem);
        exit(1);
    }
    return made;
}

enum { REDUCTION = 10, OVERHEAD = 1 };

/* Plays on a network on which messages of processes 1 and 2 take so long in each direction. */
static void check(const schedule *made, schedule_protocol protocol, double first_latency, double second_latency,
                  double rate, const double expected[PROCS]) {
    const int32_t each[PROCS] = {0, 1, 2};
    double latency[PROCS * PROCS] = {0}, nothing[PROCS * PROCS] = {0}, overhead[PROCS] = {OVERHEAD, OVERHEAD, OVERHEAD};
    const double reduction = REDUCTION, size = BYTES, rates[PROCS] = {rate, rate, rate};
    uint8_t protocols[] = {(uint8_t)protocol};
    latency[1] = latency[PROCS] = first_latency;
    latency[2] = latency[2 * PROCS] = second_latency;
    schedule_network network = {.nodes = PROCS,
                                .classes = PROCS,
                                .node_of = each,
                                .class_of = each,
                                .send_seconds = nothing,
                                .start_seconds = nothing,
                                .receive_seconds = overhead,
                                .local_seconds = {&reduction, nothing, nothing, nothing},
                                .protocol = protocols,
                                .handshake_seconds = nothing,
                                .answer_seconds = nothing,
                                .latency_seconds = latency,
                                .transfer_seconds = nothing,
                                .gap_seconds = nothing,
                                .receive_gap_seconds = nothing,
                                .local_latency_seconds = nothing,
                                .local_transfer_seconds = nothing};
    if (rate > 0) {
        network.out_rate = network.in_rate = rates;
        network.burst_bytes = nothing;
        network.load_bytes = &size;
    }
    double ends[2 * PROCS];
    schedule_trace trace = {0};
    schedule_result result = schedule_play(made, &network, 0, ends, NULL, NULL);
    for (int rank = 0; rank < PROCS; rank++) {
        expect(!result.failed && fabs(ends[rank] - expected[rank]) < 1e-6, "an end", ends[rank]);
    }
    schedule_result traced = schedule_play(made, &network, 0, ends, &trace, NULL);
    expect(traced.seconds == result.seconds && trace.last >= 0, "the same with a trace", traced.seconds);
    expect(trace.spans[trace.last].end_seconds == result.seconds, "the end of the critical path", result.seconds);
    schedule_trace_free(&trace);
    const schedule_network *twice[] = {&network, &network};
    schedule_result both[2];
    schedule_play_many(made, twice, 2, 0, ends, both);
    expect(both[0].seconds == result.seconds && both[1].seconds == result.seconds, "the same in a pass of two",
           both[1].seconds);
}

/* The copy of the process's own data, and a fork of two strands, each with a receive, a wait, a reduction, a send and a
 * wait. */
static void check_words(const schedule *made) {
    const schedule_program *program = &made->programs[made->program_of[0]];
    const schedule_kind kinds[] = {
        SCHEDULE_COPY,   SCHEDULE_FORK,       SCHEDULE_STRAND,     SCHEDULE_START_RECEIVE, SCHEDULE_WAIT,
        SCHEDULE_REDUCE, SCHEDULE_START_SEND, SCHEDULE_WAIT,       SCHEDULE_STRAND,        SCHEDULE_START_RECEIVE,
        SCHEDULE_WAIT,   SCHEDULE_REDUCE,     SCHEDULE_START_SEND, SCHEDULE_WAIT};
    size_t length = sizeof kinds / sizeof *kinds, at = 0;
    while (at < length && at < program->length && schedule_kind_of(program->words[at]) == kinds[at]) {
        at++;
    }
    expect(at == length && program->length == length, "words", (double)at);
    expect(program->strands == 2 && program->strand_requests == 2 && made->has_strands, "strands", program->strands);
}

int main(void) {
    schedule *made = record();
    check_words(made);
    /* The one whose message comes first is reduced first; of one instant the first of the list. */
    check(made, SCHEDULE_EAGER, 3, 5, 0, (const double[]){3 + 22, 3 + 11 + 3 + 1, 3 + 22 + 5 + 1});
    check(made, SCHEDULE_EAGER, 5, 3, 0, (const double[]){3 + 22, 3 + 22 + 5 + 1, 3 + 11 + 3 + 1});
    check(made, SCHEDULE_EAGER, 5, 5, 0, (const double[]){5 + 22, 5 + 11 + 5 + 1, 5 + 22 + 5 + 1});
    check(made, SCHEDULE_EAGER, 50, 3, 0, (const double[]){50 + 11, 50 + 11 + 50 + 1, 3 + 11 + 3 + 1});
    /* Process 0 waits until its last answer has arrived; over ports, until it has left. A message takes a second there,
     * two that come together take two. */
    check(made, SCHEDULE_RENDEZVOUS, 3, 5, 0, (const double[]){3 + 22 + 5, 3 + 11 + 3 + 1, 3 + 22 + 5 + 1});
    check(made, SCHEDULE_RENDEZVOUS, 5, 3, 0, (const double[]){3 + 22 + 5, 3 + 22 + 5 + 1, 3 + 11 + 3 + 1});
    check(made, SCHEDULE_EAGER, 3, 5, BYTES, (const double[]){4 + 22, 4 + 11 + 4 + 1, 4 + 22 + 6 + 1});
    check(made, SCHEDULE_EAGER, 5, 3, BYTES, (const double[]){4 + 22, 4 + 22 + 6 + 1, 4 + 11 + 4 + 1});
    check(made, SCHEDULE_EAGER, 5, 5, BYTES, (const double[]){7 + 22, 7 + 11 + 6 + 1, 7 + 22 + 6 + 1});
    check(made, SCHEDULE_RENDEZVOUS, 3, 5, BYTES, (const double[]){4 + 22 + 1, 4 + 11 + 4 + 1, 4 + 22 + 6 + 1});
    schedule_free(made);
    return failures > 0;
}
