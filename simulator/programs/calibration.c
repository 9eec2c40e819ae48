/* Point-to-point measurements from which a platform is calibrated; prints one JSON record a line.
 *
 *     calibration FILE
 *
 * One measurement a line, fields separated by blanks:
 *     id kind first second pairs message_bytes count delay_seconds repetitions
 * `first` and `second` are ranks; `first` measures the time. `pairs` pairs do the same at the same time, each
 * 2 * (second - first) ranks above the one before; only the first pair's times are printed. All other processes wait in
 * a receive, like those of any program. Receives are posted before messages can arrive, unless the kind says otherwise.
 * Kinds:
 *     clock      `first` reads the clock `count` times; the time of one reading
 *     send       the time in MPI_Send of a message
 *     isend      the time in MPI_Isend
 *     receive    the time in MPI_Recv of a message that arrived while `first` was busy for `delay_seconds`
 *     ping_pong  a message there and one back
 *     row        `count` MPI_Sends in a row until a byte comes back; "send_seconds" is the time in the sends alone
 *     exchange   `count` times MPI_Sendrecv with each other without pause; the time of one
 *     reduce     MPI_Reduce_local of doubles, a sum
 *     eager      the smallest size up to message_bytes whose MPI_Send waits for a receive that is posted delay_seconds
 *                later, by bisection; "bytes" is that size, 0 if none waits
 * Times are samples, one for each repetition; a first repetition is not counted. */
#include "internal.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if SIMULATED
static void busy_wait_and_yield(double seconds) { busy_wait(seconds); }
#else
#include <sched.h>
/* Without calling MPI, and without keeping other processes of this core from running. */
static void busy_wait_and_yield(double seconds) {
    double until = MPI_Wtime() + seconds;
    while (MPI_Wtime() < until) {
        sched_yield();
    }
}
#endif

typedef enum { CLOCK, SEND, ISEND, RECEIVE, PING_PONG, ROW, EXCHANGE, REDUCE, EAGER, KINDS } kind_of_measurement;
static const char *const kind_names[KINDS] = {"clock", "send",     "isend",  "receive", "ping_pong",
                                              "row",   "exchange", "reduce", "eager"};
enum { TAG_READY = 1, TAG_DATA, TAG_DONE, TAG_RECORD, TAG_VERDICT };

typedef struct {
    long id;
    kind_of_measurement kind;
    int first, second, pairs, bytes, count, repetitions;
    double delay_seconds;
} measurement;

/* The time of one repetition: `seconds` is what the kind measures. */
typedef struct {
    double seconds, send_seconds;
} repetition;

/* What a process needs in all repetitions of a measurement. */
typedef struct {
    const measurement *one;
    int is_first, other;
    char *out, *in;
    MPI_Request *posted;
} part;

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "calibration: %s %s\n", what, detail);
    abort_program();
}

static measurement parse(const char *line) {
    measurement one = {0};
    char kind[32];
    int procs, used = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    int fields = sscanf(line, "%ld %31s %d %d %d %d %d %lf %d%n", &one.id, kind, &one.first, &one.second, &one.pairs,
                        &one.bytes, &one.count, &one.delay_seconds, &one.repetitions, &used);
    for (one.kind = CLOCK; fields == 9 && one.kind < KINDS && strcmp(kind, kind_names[one.kind]) != 0; one.kind++) {
    }
    if (fields != 9 || line[used] != '\0' || one.kind == KINDS || one.first < 0 || one.first >= procs ||
        one.second < 0 || one.second >= procs || one.first >= one.second || one.pairs < 1 ||
        one.second + 2 * (one.pairs - 1) * (one.second - one.first) >= procs || one.bytes < 0 || one.count < 1 ||
        one.repetitions < 1 || !(one.delay_seconds >= 0)) {
        fail("malformed measurement:", line);
    }
    return one;
}

static char *allocate_touched(size_t bytes) {
    char *memory = allocate_payload(bytes + 1);
    if (memory == NULL) {
        fail("out of", "memory");
    }
    if (!SIMULATED) {
        memset(memory, 1, bytes + 1); /* memory never touched would be faster to send */
    }
    return memory;
}

static void send_to(const part *mine, int bytes, int tag) {
    MPI_Send(mine->out, bytes, MPI_BYTE, mine->other, tag, MPI_COMM_WORLD);
}

static void receive_from(const part *mine, int bytes, int tag) {
    MPI_Recv(mine->in, bytes, MPI_BYTE, mine->other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void post_receives(const part *mine, int count) {
    for (int i = 0; i < count; i++) {
        MPI_Irecv(mine->in, mine->one->bytes, MPI_BYTE, mine->other, TAG_DATA, MPI_COMM_WORLD, &mine->posted[i]);
    }
}

/* `first` continues when the other process is ready. */
static void synchronise(const part *mine) {
    if (mine->is_first) {
        receive_from(mine, 0, TAG_READY);
    } else {
        send_to(mine, 0, TAG_READY);
    }
}

static repetition time_clock(const measurement *one) {
    double start = MPI_Wtime(), end = start;
    for (int i = 0; i < one->count; i++) {
        end = MPI_Wtime();
    }
    return (repetition){(end - start) / one->count, 0};
}

/* Simulated reductions are charged by the algorithms, not here: this is for real MPI. */
static repetition time_reduce(const part *mine) {
    int elements = mine->one->bytes / (int)sizeof(double);
    memset(mine->in, 0, (size_t)mine->one->bytes);
    memset(mine->out, 0, (size_t)mine->one->bytes);
    double start = MPI_Wtime();
    MPI_Reduce_local(mine->out, mine->in, elements, MPI_DOUBLE, MPI_SUM);
    return (repetition){MPI_Wtime() - start, 0};
}

/* `count` messages one way, a byte back. */
static repetition time_row(const part *mine) {
    const measurement *one = mine->one;
    if (!mine->is_first) {
        post_receives(mine, one->count);
        synchronise(mine);
        MPI_Waitall(one->count, mine->posted, MPI_STATUSES_IGNORE);
        send_to(mine, 1, TAG_DONE);
        return (repetition){0, 0};
    }
    synchronise(mine);
    MPI_Request request = MPI_REQUEST_NULL;
    double start = MPI_Wtime();
    for (int i = 0; i < one->count; i++) {
        if (one->kind == ISEND) {
            MPI_Isend(mine->out, one->bytes, MPI_BYTE, mine->other, TAG_DATA, MPI_COMM_WORLD, &request);
        } else {
            send_to(mine, one->bytes, TAG_DATA);
        }
    }
    double sent = MPI_Wtime();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    receive_from(mine, 1, TAG_DONE);
    return (repetition){(one->kind == ROW ? MPI_Wtime() : sent) - start, sent - start};
}

static repetition time_receive(const part *mine) {
    if (!mine->is_first) {
        receive_from(mine, 0, TAG_READY);
        send_to(mine, mine->one->bytes, TAG_DATA);
        return (repetition){0, 0};
    }
    send_to(mine, 0, TAG_READY);
    busy_wait_and_yield(mine->one->delay_seconds);
    double start = MPI_Wtime();
    receive_from(mine, mine->one->bytes, TAG_DATA);
    return (repetition){MPI_Wtime() - start, 0};
}

static repetition time_ping_pong(const part *mine) {
    post_receives(mine, 1);
    synchronise(mine);
    double start = MPI_Wtime();
    if (mine->is_first) {
        send_to(mine, mine->one->bytes, TAG_DATA);
    }
    MPI_Wait(&mine->posted[0], MPI_STATUS_IGNORE);
    if (!mine->is_first) {
        send_to(mine, mine->one->bytes, TAG_DATA);
    }
    return (repetition){MPI_Wtime() - start, 0};
}

static repetition time_exchange(const part *mine) {
    int bytes = mine->one->bytes;
    synchronise(mine);
    double start = MPI_Wtime();
    for (int i = 0; i < mine->one->count; i++) {
        MPI_Sendrecv(mine->out, bytes, MPI_BYTE, mine->other, TAG_DATA, mine->in, bytes, MPI_BYTE, mine->other,
                     TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (repetition){(MPI_Wtime() - start) / mine->one->count, 0};
}

/* Whether MPI_Send of so many bytes waits for the receive; both processes get the answer. */
static int send_waits(const part *mine, int bytes) {
    int waits = 0;
    synchronise(mine);
    if (mine->is_first) {
        double start = MPI_Wtime();
        send_to(mine, bytes, TAG_DATA);
        waits = MPI_Wtime() - start > mine->one->delay_seconds / 2;
        MPI_Send(&waits, 1, MPI_INT, mine->other, TAG_VERDICT, MPI_COMM_WORLD);
    } else {
        busy_wait_and_yield(mine->one->delay_seconds);
        receive_from(mine, bytes, TAG_DATA);
        MPI_Recv(&waits, 1, MPI_INT, mine->other, TAG_VERDICT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return waits;
}

static int eager_limit(const part *mine) {
    int returns = 0, waits = mine->one->bytes;
    if (!send_waits(mine, waits)) {
        return 0;
    }
    while (waits - returns > 1) {
        int middle = returns + (waits - returns) / 2, votes = 0;
        /* A send may also be late for other reasons, so a single one in time decides. */
        for (votes = 0; votes < mine->one->repetitions && send_waits(mine, middle); votes++) {
        }
        *(votes == mine->one->repetitions ? &waits : &returns) = middle;
    }
    return waits;
}

static repetition repeat_once(const part *mine) {
    switch (mine->one->kind) {
    case RECEIVE:
        return time_receive(mine);
    case PING_PONG:
        return time_ping_pong(mine);
    case EXCHANGE:
        return time_exchange(mine);
    default:
        return time_row(mine);
    }
}

/* Rank 0 prints all records, so that lines are never mixed. */
static void print_samples(const measurement *one, const repetition *times) {
    printf("{\"id\": %ld, \"seconds\": [", one->id);
    for (int i = 0; i < one->repetitions; i++) {
        printf("%s%.17g", i > 0 ? ", " : "", times[i].seconds);
    }
    if (one->kind == ROW) {
        printf("], \"send_seconds\": [");
        for (int i = 0; i < one->repetitions; i++) {
            printf("%s%.17g", i > 0 ? ", " : "", times[i].send_seconds);
        }
    }
    printf("]}\n");
}

static void report(const measurement *one, repetition *times, int rank) {
    int bytes = one->repetitions * (int)sizeof *times;
    if (rank == one->first && rank != 0) {
        MPI_Send(times, bytes, MPI_BYTE, 0, TAG_RECORD, MPI_COMM_WORLD);
    }
    if (rank != 0) {
        return;
    }
    if (one->first != 0) {
        MPI_Recv(times, bytes, MPI_BYTE, one->first, TAG_RECORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (one->kind == EAGER) {
        printf("{\"id\": %ld, \"bytes\": %.0f}\n", one->id, times[0].seconds);
    } else {
        print_samples(one, times);
    }
    fflush(stdout);
}

static void run_repetitions(const part *mine, repetition *times) {
    const measurement *one = mine->one;
    if (one->kind == EAGER) {
        times[0].seconds = eager_limit(mine);
        return;
    }
    int alone = one->kind == CLOCK || one->kind == REDUCE;
    for (int i = -1; i < one->repetitions; i++) {
        repetition own = {0, 0};
        if (!alone) {
            own = repeat_once(mine);
        } else if (mine->is_first) {
            own = one->kind == CLOCK ? time_clock(one) : time_reduce(mine);
        }
        if (i >= 0) {
            times[i] = own;
        }
    }
}

static void run(const measurement *one, int rank) {
    repetition *times = collwise_allocate((size_t)one->repetitions * sizeof *times, MPI_COMM_WORLD);
    memset(times, 0, (size_t)one->repetitions * sizeof *times);
    int apart = one->second - one->first, pair = (rank - one->first) / (2 * apart);
    int place = (rank - one->first) % (2 * apart); /* within a pair: 0 is its first process, `apart` its second */
    if (rank >= one->first && pair < one->pairs && (place == 0 || place == apart)) {
        part mine = {.one = one, .is_first = place == 0, .other = place == 0 ? rank + apart : rank - apart};
        mine.out = allocate_touched((size_t)one->bytes);
        mine.in = allocate_touched((size_t)one->bytes);
        mine.posted = collwise_allocate((size_t)one->count * sizeof(MPI_Request), MPI_COMM_WORLD);
        run_repetitions(&mine, times);
        free(mine.posted);
        free_payload(mine.in);
        free_payload(mine.out);
    }
    report(one, times, rank);
    free(times);
    collwise_barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2) {
        fail("usage:", "calibration FILE");
    }
    char *text = read_text(argv[1]), *rest;
    if (text == NULL) {
        fail("cannot read", argv[1]);
    }
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        measurement one = parse(line);
        run(&one, rank);
    }
    free(text);
    MPI_Finalize();
    return 0;
}
