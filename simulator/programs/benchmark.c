/* Times many cases in one execution and prints one JSON record a line as soon as each is known.
 *
 *     benchmark CASES [--timing root|maximum] [--repetitions N] [--warmup N]
 *
 * CASES is a text file, one case a line, fields by blanks:
 *     id experiment collective algorithm procs root message_bytes segment_bytes fanout gather_bytes
 * Experiments:
 *     collective    the collective itself, by an algorithm of ours
 *     builtin       MPI's own collective, after one untimed call; the algorithm's name is not looked at
 *     bcast_gather  Nuriyev & Lastovetsky 2021, section IV-C: broadcast of message_bytes, a barrier, linear gather of
 *                   gather_bytes; meant to be read on the root's clock
 *     barrier       the barrier alone, to be taken off bcast_gather
 *     exchange      the second phase of split-binary alone
 *     roundtrip     a message from the root to the last process and back
 * A case runs on the first `procs` processes; the others wait.
 *
 * In simulation all processes start a case at one instant of the simulated clock, which is global and exact;
 * "seconds" lasts until the last process is done, "root_seconds" until the root is. On real MPI each repetition is
 * preceded by two barriers; timing "root" reads the root's clock after a closing barrier, "maximum" takes the slowest
 * process's own time. */
#include "internal.h"
#include "timing.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long id;
    char experiment[32], collective[32], algorithm[64];
    int procs, root;
    long long message_bytes, segment_bytes, gather_bytes;
    int fanout;
} bench_case;

typedef struct {
    int timing_is_maximum;
    int repetitions;
    int warmup;
} bench_options;

static const workload_memory payload_memory = {allocate_payload, free_payload};

/* What a case runs on: the collective, and for bcast_gather the gather behind it. */
typedef struct {
    const collwise_algorithm *algorithm;
    workload work, gather;
} preparation;

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "benchmark: %s %s\n", what, detail);
    give_up();
}

static int parse_case(const char *line, bench_case *one) {
    return sscanf(line, "%ld %31s %31s %63s %d %d %lld %lld %d %lld", &one->id, one->experiment, one->collective,
                  one->algorithm, &one->procs, &one->root, &one->message_bytes, &one->segment_bytes, &one->fanout,
                  &one->gather_bytes) == 10;
}

static int is(const bench_case *one, const char *experiment) { return strcmp(one->experiment, experiment) == 0; }

/* What is wrong with a case, or NULL. */
static const char *objection(const bench_case *one, int world_procs) {
    if (one->procs < 1 || one->procs > world_procs) {
        return "procs is not between 1 and the number of processes started";
    }
    if (one->root < 0 || one->root >= one->procs) {
        return "root is not a rank";
    }
    if (one->message_bytes < 0 || one->segment_bytes < 0 || one->gather_bytes < 0 || one->message_bytes > 1 << 30) {
        return "sizes must be between 0 and 1 GiB";
    }
    if (is(one, "barrier") || is(one, "exchange") || is(one, "roundtrip")) {
        return NULL;
    }
    if (!is(one, "collective") && !is(one, "bcast_gather") && !is(one, "builtin")) {
        return "unknown experiment";
    }
    if (workload_kind(one->collective) == COLLWISE_COLLECTIVES) {
        return "unknown collective";
    }
    if (is(one, "bcast_gather") && workload_kind(one->collective) != COLLWISE_BCAST) {
        return "bcast_gather takes a broadcast";
    }
    if (is(one, "builtin")) {
        return NULL;
    }
    const collwise_algorithm *algorithm = collwise_find(one->collective, one->algorithm);
    return algorithm == NULL ? "unknown algorithm" : collwise_procs_objection(algorithm, one->procs);
}

/* The collective of a case; experiments without one use a broadcast's buffer. */
static collwise_collective kind_of(const bench_case *one) {
    collwise_collective kind = workload_kind(one->collective);
    return kind == COLLWISE_COLLECTIVES || is(one, "exchange") || is(one, "roundtrip") ? COLLWISE_BCAST : kind;
}

static void roundtrip(const bench_case *one, char *message, MPI_Comm comm) {
    int rank, bytes = (int)one->message_bytes;
    MPI_Comm_rank(comm, &rank);
    int other = (one->root + one->procs - 1) % one->procs;
    if (other == one->root) {
        return;
    }
    if (rank == one->root) {
        MPI_Send(message, bytes, MPI_BYTE, other, 0, comm);
        MPI_Recv(message, bytes, MPI_BYTE, other, 0, comm, MPI_STATUS_IGNORE);
    } else if (rank == other) {
        MPI_Recv(message, bytes, MPI_BYTE, one->root, 0, comm, MPI_STATUS_IGNORE);
        MPI_Send(message, bytes, MPI_BYTE, one->root, 0, comm);
    }
}

static void run(const bench_case *one, const preparation *ready, MPI_Comm comm) {
    if (is(one, "barrier")) {
        collwise_barrier(comm);
    } else if (is(one, "exchange")) {
        collwise_split_binary_exchange(ready->work.call.receive, (size_t)one->message_bytes, one->root,
                                       collwise_private(comm));
    } else if (is(one, "roundtrip")) {
        roundtrip(one, ready->work.call.receive, comm);
    } else if (is(one, "builtin")) {
        workload_call_mpi(&ready->work);
    } else {
        collwise_parameters with = {.segment_bytes = (size_t)one->segment_bytes, .fanout = one->fanout};
        collwise_run(ready->algorithm, &ready->work.call, with);
        if (is(one, "bcast_gather")) {
            collwise_barrier(comm);
            collwise_run(collwise_find("gather", "linear"), &ready->gather.call, (collwise_parameters){0});
        }
    }
}

static preparation prepare(const bench_case *one, MPI_Comm comm) {
    preparation ready = {.algorithm = collwise_find(one->collective, one->algorithm)};
    int made = workload_make(&ready.work, kind_of(one), (size_t)one->message_bytes, one->root, comm, payload_memory);
    made = made &&
           workload_make(&ready.gather, COLLWISE_GATHER, (size_t)one->gather_bytes, one->root, comm, payload_memory);
    if (!made) {
        fail("out of memory for", one->algorithm);
    }
    collwise_private(comm);
    if (is(one, "builtin")) {
        workload_call_mpi(&ready.work);
    }
    return ready;
}

static void clean_up(preparation *ready) {
    workload_free(&ready->work);
    workload_free(&ready->gather);
}

/* Processes that take no part, or are done early, wait in a meeting, which sends nothing: agreeing on the end would
 * share links with what still runs. */
static void simulate(const bench_case *one, const preparation *ready, MPI_Comm comm, common_start *start) {
    int world_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    start_together(start);
    double ends[2] = {-INFINITY, -INFINITY};
    if (comm != MPI_COMM_NULL) {
        run(one, ready, comm);
        ends[0] = MPI_Wtime();
        ends[1] = world_rank == one->root ? ends[0] : -INFINITY;
    }
    meet(start);
    largest(ends, 2, MPI_COMM_WORLD);
    if (world_rank == 0) {
        printf("{\"id\": %ld, \"seconds\": %.17g, \"root_seconds\": %.17g, \"repetitions\": 1}\n", one->id,
               ends[0] - start->seconds, ends[1] - start->seconds);
    }
    ended_together(start, ends[0]);
}

static double measure_once(const bench_case *one, const preparation *ready, MPI_Comm comm, int timing_is_maximum) {
    collwise_barrier(comm);
    collwise_barrier(comm);
    double start = MPI_Wtime();
    run(one, ready, comm);
    if (!timing_is_maximum) {
        collwise_barrier(comm);
    }
    double seconds = MPI_Wtime() - start;
    if (timing_is_maximum) {
        largest(&seconds, 1, comm);
    }
    return seconds;
}

static void measure(const bench_case *one, const preparation *ready, MPI_Comm comm, bench_options options) {
    double sum = 0, squares = 0, least = INFINITY;
    for (int i = -options.warmup; i < options.repetitions; i++) {
        double seconds = measure_once(one, ready, comm, options.timing_is_maximum);
        if (i >= 0) {
            sum += seconds;
            squares += seconds * seconds;
            least = fmin(least, seconds);
        }
    }
    int rank, n = options.repetitions;
    MPI_Comm_rank(comm, &rank);
    if (rank == one->root) {
        double mean = sum / n;
        double deviation = n > 1 ? sqrt(fmax(0, (squares - n * mean * mean) / (n - 1))) : 0;
        printf("{\"id\": %ld, \"seconds\": %.9g, \"least_seconds\": %.9g, \"deviation_seconds\": %.9g, "
               "\"repetitions\": %d}\n",
               one->id, mean, least, deviation, n);
    }
}

/* Processes outside of `comm` only keep time. */
static void run_case(const bench_case *one, MPI_Comm comm, bench_options options, common_start *start) {
    preparation ready = {0};
    if (comm != MPI_COMM_NULL) {
        ready = prepare(one, comm);
    }
    if (SIMULATED) {
        simulate(one, &ready, comm, start);
    } else if (comm != MPI_COMM_NULL) {
        measure(one, &ready, comm, options);
    }
    if (comm != MPI_COMM_NULL) {
        clean_up(&ready);
    }
}

static void run_cases(char *text, bench_options options) {
    int world_procs, world_rank;
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    common_start start = common_start_make();
    first_processes kept = {MPI_COMM_NULL, 0};
    char *rest; /* strtok itself keeps its place in the C library, which simulated processes share */
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        bench_case one;
        if (!parse_case(line, &one)) {
            fail("malformed case:", line);
        }
        const char *wrong = objection(&one, world_procs);
        if (wrong != NULL) {
            if (world_rank == 0) {
                printf("{\"id\": %ld, \"error\": \"%s\"}\n", one.id, wrong);
            }
        } else {
            run_case(&one, take_first(&kept, one.procs), options, &start);
        }
        fflush(stdout);
    }
}

static int positive(const char *option, const char *text, int least) {
    char *end;
    long value = text == NULL ? least - 1 : strtol(text, &end, 10);
    if (value < least || value > 1000000 || *end != '\0') {
        fail("needs a whole number after", option);
    }
    return (int)value;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    bench_options options = {.timing_is_maximum = 1, .repetitions = 10, .warmup = 1};
    if (argc < 2) {
        fail("usage:", "benchmark CASES [--timing root|maximum] [--repetitions N] [--warmup N]");
    }
    for (int i = 2; i < argc; i += 2) {
        char *value = argv[i + 1];
        if (strcmp(argv[i], "--timing") == 0 && value != NULL && strcmp(value, "root") == 0) {
            options.timing_is_maximum = 0;
        } else if (strcmp(argv[i], "--timing") == 0 && value != NULL && strcmp(value, "maximum") == 0) {
            options.timing_is_maximum = 1;
        } else if (strcmp(argv[i], "--repetitions") == 0) {
            options.repetitions = positive(argv[i], value, 1);
        } else if (strcmp(argv[i], "--warmup") == 0) {
            options.warmup = positive(argv[i], value, 0);
        } else {
            fail("unknown option or value:", argv[i]);
        }
    }
    char *text = read_text(argv[1]);
    if (text == NULL) {
        fail("cannot read", argv[1]);
    }
    run_cases(text, options);
    free(text);
    MPI_Finalize();
    return 0;
}
