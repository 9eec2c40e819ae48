/* Runs every algorithm of the registry on real data and compares each byte with the collective's definition.
 *
 *     verify [--collective NAME] [--algorithm NAME] [--procs 1,2,5] [--quick] [--skip N]
 *
 * Without --procs it takes every process count up to the number of processes started. One JSON line an algorithm:
 *     {"collective": .., "algorithm": .., "cases": N, "failures": N, "first_failure": text or null}
 * and one for each test of communicators, as the collective "isolation". At the end comes {"finished": true}.
 *
 * A wrong algorithm may also hang or crash the run. A line {"collective": .., "algorithm": .., "started": text} before
 * the cases of each communicator says where it was, and a second run with --skip goes on behind it: N algorithms are
 * left out. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LISTED = 64, CASES = 19, QUICK_CASES = 6, MOST_SEGMENTS = 64 };

typedef struct {
    const char *collective, *algorithm; /* NULL: all */
    bool quick;
    int skip;
    int listed;
    int procs[MOST_LISTED];
} options;

typedef enum { PLAIN, REVERSED, DUPLICATE, COMMUNICATORS } communicator;
static const char *const communicator_names[] = {"ranks as started", "ranks reversed", "duplicated communicator"};

/* What a case is made of. The lengths of these lists (3, 7, 8, 11, 13) have no common factor: case i takes entry
 * i modulo the length of each, and any two lists are combined in full by as many cases in a row as their product. */
enum { ROOTS = 3 };
enum { ONE_BELOW_PROCS = -1 };
static const int int_counts[] = {0, 1, 2, 7, 1009, ONE_BELOW_PROCS, 50000};
static const size_t segment_sizes[] = {0, 1, 7, 100, 1024, 4097, 8192, 10000000};
static const int fanouts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 100};
static const struct {
    verify_kind at_root, elsewhere;
} kinds[] = {
    {VERIFY_INT, VERIFY_INT},
    {VERIFY_BYTE, VERIFY_BYTE},
    {VERIFY_DOUBLE_INT, VERIFY_DOUBLE_INT},
    {VERIFY_CONTIGUOUS, VERIFY_CONTIGUOUS},
    {VERIFY_VECTOR, VERIFY_VECTOR},
    {VERIFY_INDEXED, VERIFY_INDEXED},
    {VERIFY_HINDEXED, VERIFY_HINDEXED},
    {VERIFY_NEGATIVE, VERIFY_NEGATIVE},
    {VERIFY_PAIR, VERIFY_SWAPPED_PAIR},
    {VERIFY_WHOLE, VERIFY_INT},
    {VERIFY_INT, VERIFY_WHOLE},
    {VERIFY_VECTOR, VERIFY_NEGATIVE},
#ifdef SMPI_SHARED_MALLOC /* SimGrid packs contiguous types of others with holes as if they had none */
    {VERIFY_HINDEXED, VERIFY_INDEXED},
#else
    {VERIFY_NESTED, VERIFY_INDEXED},
#endif
};

#define ENTRY(list, index) (list)[(index) % (sizeof(list) / sizeof *(list))]

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

static verify_call call_of(const collwise_algorithm *algorithm, unsigned index, int procs) {
    const int roots[ROOTS] = {0, procs / 2, procs - 1};
    verify_call call = {.algorithm = algorithm,
                        .serial = index,
                        .root = ENTRY(roots, index),
                        .ints = ENTRY(int_counts, index),
                        .at_root = ENTRY(kinds, index).at_root,
                        .elsewhere = ENTRY(kinds, index).elsewhere,
                        .in_place = index % 5 < 2,
                        .with = {.segment_bytes = ENTRY(segment_sizes, index), .fanout = ENTRY(fanouts, index)}};
    if (call.ints == ONE_BELOW_PROCS) {
        call.ints = procs - 1;
    }
    if (call.with.segment_bytes > 0) { /* tiny segments of a large message would take minutes to simulate */
        size_t bytes = verify_message_bytes(call.at_root, call.ints);
        call.with.segment_bytes = largest(call.with.segment_bytes, bytes / MOST_SEGMENTS);
    }
    return call;
}

static void describe(const verify_call *call, int procs, communicator kind, char text[VERIFY_TEXT]) {
    snprintf(text, VERIFY_TEXT,
             "P = %d (%s), root %d, %d items as %s at the root and %s elsewhere, segments of %zu bytes, "
             "fanout %d%s",
             procs, communicator_names[kind], call->root, call->ints, verify_kind_name(call->at_root),
             verify_kind_name(call->elsewhere), call->with.segment_bytes, call->with.fanout,
             call->in_place ? ", in place where that exists" : "");
}

/* A duplicate outlives its original, which has a private duplicate already. */
static MPI_Comm make_communicator(int procs, communicator kind) {
    MPI_Comm comm = verify_first_processes(procs, kind == REVERSED);
    if (kind == DUPLICATE && comm != MPI_COMM_NULL) {
        MPI_Comm original = comm;
        collwise_private(original);
        MPI_Comm_dup(original, &comm);
        MPI_Comm_free(&original);
    }
    return comm;
}

static void run_cases(const collwise_algorithm *algorithm, MPI_Comm comm, communicator kind, unsigned first,
                      unsigned cases, verify_tally *tally) {
    char what[VERIFY_TEXT], complaint[VERIFY_TEXT];
    int procs;
    MPI_Comm_size(comm, &procs);
    for (unsigned i = 0; i < cases; i++) {
        verify_call call = call_of(algorithm, first + i, procs);
        describe(&call, procs, kind, what);
        verify_count(tally, what, verify_call_is_right(&call, comm, complaint) ? NULL : complaint);
    }
    snprintf(what, VERIFY_TEXT, "P = %d (%s), after all cases", procs, communicator_names[kind]);
    verify_count(tally, what, verify_has_leftovers(comm) ? "a message was left unreceived" : NULL);
}

static void run_algorithm(const collwise_algorithm *algorithm, const options *options) {
    verify_tally tally;
    unsigned cases = options->quick ? QUICK_CASES : CASES, first = 0;
    verify_start(&tally);
    for (int i = 0; i < options->listed; i++) {
        for (communicator kind = PLAIN; kind < COMMUNICATORS; kind++, first += cases) {
            verify_say_started(algorithm->collective, algorithm->name, options->procs[i], communicator_names[kind]);
            MPI_Comm comm = make_communicator(options->procs[i], kind);
            if (comm == MPI_COMM_NULL) {
                verify_skip(&tally, (int)cases + 1);
            } else {
                run_cases(algorithm, comm, kind, first, cases, &tally);
                MPI_Comm_free(&comm);
            }
        }
    }
    verify_report(&tally, algorithm->collective, algorithm->name);
}

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "verify: %s %s\n", what, detail);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void list_procs(options *options, const char *text, int world_procs) {
    const char *rest = text;
    for (options->listed = 0; options->listed == 0 || *rest++ == ','; options->listed++) {
        char *end;
        long procs = strtol(rest, &end, 10);
        if (end == rest || procs < 1 || procs > world_procs || options->listed == MOST_LISTED) {
            fail("--procs takes a list of process counts up to that of the processes started, not", text);
        }
        options->procs[options->listed] = (int)procs;
        rest = end;
    }
    if (rest[-1] != '\0') {
        fail("--procs takes whole numbers with commas between them, not", text);
    }
}

static options parse(int argc, char **argv, int world_procs) {
    options options = {.listed = world_procs < MOST_LISTED ? world_procs : MOST_LISTED};
    for (int i = 0; i < options.listed; i++) {
        options.procs[i] = i + 1;
    }
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            options.quick = true;
            continue;
        }
        if (value == NULL) {
            fail("unknown option, or no value after", argv[i]);
        } else if (strcmp(argv[i], "--collective") == 0) {
            options.collective = value;
        } else if (strcmp(argv[i], "--algorithm") == 0) {
            options.algorithm = value;
        } else if (strcmp(argv[i], "--skip") == 0) {
            options.skip = atoi(value);
        } else if (strcmp(argv[i], "--procs") == 0) {
            list_procs(&options, value, world_procs);
        } else {
            fail("unknown option", argv[i]);
        }
        i++;
    }
    return options;
}

static bool is_wanted(const options *options, const char *collective, const char *algorithm, int *wanted) {
    if ((options->collective != NULL && strcmp(options->collective, collective) != 0) ||
        (options->algorithm != NULL && strcmp(options->algorithm, algorithm) != 0)) {
        return false;
    }
    return ++*wanted > options->skip;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int world_procs, rank, wanted = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options options = parse(argc, argv, world_procs);
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        if (is_wanted(&options, each->collective, each->name, &wanted)) {
            run_algorithm(each, &options);
        }
    }
    for (int test = 0; verify_isolation_name(test) != NULL; test++) {
        if (is_wanted(&options, "isolation", verify_isolation_name(test), &wanted)) {
            verify_isolation(test, world_procs);
        }
    }
    if (wanted == 0) {
        fail("no such algorithm in the catalogue:", options.algorithm ? options.algorithm : options.collective);
    }
    if (rank == 0) {
        printf("{\"finished\": true}\n");
    }
    MPI_Finalize();
    return 0;
}
