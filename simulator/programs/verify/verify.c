/* Runs every algorithm of the registry on real data and compares each byte with the collective's definition.
 *
 *     verify [--collective NAME] [--algorithm NAME] [--by-node] [--procs 1,2,5] [--quick] [--skip N]
 *
 * With --by-node it takes only algorithms that treat the processes of one node differently from others. Without --procs
 * it takes every process count up to the number of processes started. One JSON line an algorithm:
 *     {"collective": .., "algorithm": .., "cases": N, "skipped": N, "failures": N, "first_failure": text or null}
 * where those skipped are cases to which the algorithm does not apply, and one for each test of communicators, as the
 * collective "isolation". At the end comes {"finished": true}.
 *
 * A wrong algorithm may also hang or crash the run. A line {"collective": .., "algorithm": .., "started": text} before
 * the cases of each communicator says where it was, and a second run with --skip goes on behind it: N algorithms are
 * left out. */
#include "verify.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LISTED = 64, MOST_SEGMENTS = 64 };

/* Cases on each communicator: fewer on large ones, whose calls take longer to simulate. */
enum { QUICK_CASES = 8, CASES = 19, CASES_OF_LARGE = 10, LARGE_PROCS = 18 };

typedef struct {
    const char *collective, *algorithm; /* NULL: all */
    bool by_node, quick;
    int skip;
    int listed;
    int procs[MOST_LISTED];
} options;

typedef enum { PLAIN, REVERSED, DUPLICATE, COMMUNICATORS } communicator;
static const char *const communicator_names[] = {"ranks as started", "ranks reversed", "duplicated communicator"};

/* Which processes share a node, for the algorithms that look at this: as MPI says, on nodes of 1, 2, 3 and so on, by
 * turns on nodes of about 3, and each on a node of its own. */
typedef enum { AS_STARTED, UNEVEN, CYCLIC, APART, PLACEMENTS } placement;
static const char *const placement_names[] = {"", ", uneven nodes", ", cyclic placement", ", nodes of one process"};

/* The elements of a case. The lengths of these lists (3, 7, 8, 11, 17, 19, and 5 by twos for in place) have no common
 * factor: case i takes entry i modulo the length of each, and any two lists are combined in full by as many cases in a
 * row as their product. */
enum { ROOTS = 3 };
enum { ONE_BELOW_PROCS = -1, MOST_INTS = 50000 };
static const int int_counts[] = {0, 1, 2, 7, 1009, ONE_BELOW_PROCS, MOST_INTS};
static const size_t part_sizes[] = {0, 1, 7, 100, 1024, 4097, 8192, 10000000};
static const size_t limits[] = {0, 4, 4035, 28, 0, 8072, 0, 100000, 4036, 0, 16144, 1, 0, 4037, 200000, 1000, 0};
static const int counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 100};
static const verify_kind kinds[][2] = {
    {VERIFY_INT, VERIFY_INT},
    {VERIFY_BYTE, VERIFY_BYTE},
    {VERIFY_DOUBLE_INT, VERIFY_DOUBLE_INT},
    {VERIFY_CONTIGUOUS, VERIFY_ADJACENT},
    {VERIFY_VECTOR, VERIFY_VECTOR},
    {VERIFY_INTERLEAVED, VERIFY_DEEP},
    {VERIFY_INDEXED, VERIFY_INDEXED},
    {VERIFY_ADJACENT_BELOW, VERIFY_HINDEXED},
    {VERIFY_PAIR, VERIFY_SWAPPED_PAIR},
    {VERIFY_SPREAD, VERIFY_BACKWARDS},
    {VERIFY_HINDEXED, VERIFY_ADJACENT_STRUCT},
    {VERIFY_NEGATIVE, VERIFY_NEGATIVE},
    {VERIFY_ADJACENT, VERIFY_ADJACENT_BELOW},
    {VERIFY_WHOLE, VERIFY_INT},
    {VERIFY_DEEP, VERIFY_SPREAD},
    {VERIFY_ADJACENT_STRUCT, VERIFY_INTERLEAVED},
    {VERIFY_INT, VERIFY_WHOLE},
    {VERIFY_VECTOR, VERIFY_CONTIGUOUS},
    {VERIFY_NESTED, VERIFY_BACKWARDS},
};
/* As many as kinds, which reductions do not look at. */
static const struct {
    verify_operation operation;
    verify_kind operand;
} reductions[] = {
    {VERIFY_SUM, VERIFY_INT},          {VERIFY_COMPOSE, VERIFY_CONTIGUOUS},     {VERIFY_MAXLOC, VERIFY_DOUBLE_INT},
    {VERIFY_COMPOSE, VERIFY_ADJACENT}, {VERIFY_ROUNDED_SUM, VERIFY_DOUBLE},     {VERIFY_CIRCLE, VERIFY_INTERLEAVED},
    {VERIFY_COMPOSE, VERIFY_VECTOR},   {VERIFY_COMPOSE, VERIFY_SPREAD},         {VERIFY_XOR, VERIFY_BYTE},
    {VERIFY_CIRCLE, VERIFY_NEGATIVE},  {VERIFY_COMPOSE, VERIFY_ADJACENT_BELOW}, {VERIFY_CIRCLE, VERIFY_INT},
    {VERIFY_COMPOSE, VERIFY_INDEXED},  {VERIFY_CIRCLE, VERIFY_ADJACENT_STRUCT}, {VERIFY_COMPOSE, VERIFY_DEEP},
    {VERIFY_MAX, VERIFY_DOUBLE},       {VERIFY_COMPOSE, VERIFY_HINDEXED},       {VERIFY_CIRCLE, VERIFY_BACKWARDS},
    {VERIFY_COMPOSE, VERIFY_NESTED},
};

#define ENTRY(list, index) (list)[(index) % (sizeof(list) / sizeof *(list))]

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

static int least(int a, int b) { return a < b ? a : b; }

/* All data of a process is bounded, and so is the work of its references. */
static int bounded(int ints, const collwise_algorithm *algorithm, int procs) {
    bool blocks_of_all = (algorithm->kind >= COLLWISE_ALLGATHER && algorithm->kind <= COLLWISE_ALLTOALLV) ||
                         algorithm->kind == COLLWISE_REDUCE_SCATTER || algorithm->kind == COLLWISE_REDUCE_SCATTER_BLOCK;
    return least(ints, MOST_INTS / procs * (blocks_of_all ? 1 : 8));
}

static bool is_parameter(const char *name, const char *wanted) { return name != NULL && strcmp(name, wanted) == 0; }

static verify_call call_of(const collwise_algorithm *algorithm, unsigned index, int procs) {
    const int roots[ROOTS] = {0, procs / 2, procs - 1};
    int ints = ENTRY(int_counts, index);
    verify_call call = {.algorithm = algorithm,
                        .serial = index,
                        .root = ENTRY(roots, index),
                        .ints = ints == ONE_BELOW_PROCS ? procs - 1 : bounded(ints, algorithm, procs),
                        .kinds = {ENTRY(kinds, index)[0], ENTRY(kinds, index)[1]},
                        .operation = ENTRY(reductions, index).operation,
                        .operand = ENTRY(reductions, index).operand,
                        .in_place = index % 5 < 2,
                        .with = {.part_bytes = ENTRY(part_sizes, index),
                                 .count = ENTRY(counts, index),
                                 .limit_bytes = ENTRY(limits, index)}};
    if (call.with.part_bytes > 0) { /* tiny segments of a large message would take minutes to simulate */
        size_t bytes = verify_message_bytes(call.kinds[0], call.ints);
        call.with.part_bytes = largest(call.with.part_bytes, bytes / MOST_SEGMENTS);
    }
    if (is_parameter(algorithm->limit_parameter, "between_segment_bytes") && call.with.between_segment_bytes > 0) {
        size_t bytes = verify_message_bytes(call.kinds[0], call.ints);
        call.with.between_segment_bytes = largest(call.with.between_segment_bytes, bytes / MOST_SEGMENTS);
    }
    if (is_parameter(algorithm->count_parameter, "within")) {
        call.with.within %= COLLWISE_WITHIN_FORMS;
    }
    return call;
}

static void describe(const verify_call *call, int procs, const char *where, char text[VERIFY_TEXT]) {
    char data[VERIFY_TEXT / 2];
    if (call->algorithm->kind == COLLWISE_BARRIER) {
        snprintf(text, VERIFY_TEXT, "P = %d (%s), case %u", procs, where, call->serial);
        return;
    }
    if (verify_is_reduction(call->algorithm->kind)) {
        snprintf(data, sizeof data, "%s of %s", verify_operation_name(call->operation),
                 verify_kind_name(call->operand));
    } else {
        snprintf(data, sizeof data, "%s and %s", verify_kind_name(call->kinds[0]), verify_kind_name(call->kinds[1]));
    }
    snprintf(text, VERIFY_TEXT,
             "P = %d (%s), case %u, root %d, %d items, %s, parts of %zu bytes, limit %zu, count %d%s", procs, where,
             call->serial, call->root, call->ints, data, call->with.part_bytes, call->with.limit_bytes,
             call->with.count, call->in_place ? ", in place" : "");
}

/* A duplicate outlives its original, which has a private duplicate already. */
static MPI_Comm make_communicator(int procs, communicator kind) {
    MPI_Comm comm = verify_processes(MPI_COMM_WORLD, 0, procs, kind == REVERSED);
    if (kind == DUPLICATE && comm != MPI_COMM_NULL) {
        MPI_Comm original = comm;
        collwise_private(original);
        MPI_Comm_dup(original, &comm);
        MPI_Comm_free(&original);
    }
    return comm;
}

/* A process's node. */
static int node_of(placement placed, int rank, int procs) {
    int node = 0;
    switch (placed) {
    case UNEVEN:
        for (int first = 0; first + node < rank; first += node) {
            node++;
        }
        return node;
    case CYCLIC:
        return rank % ((procs + 2) / 3);
    default:
        return rank;
    }
}

/* Real nodes cannot share the memory of others: where there are several, they are divided, and for a cyclic placement
 * the ranks go round them by turns. Simulated nodes have one process each here, and share nothing. */
static MPI_Comm place(MPI_Comm comm, placement placed) {
    int rank, procs, neighbours, first, local_rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &procs);
    if (placed == AS_STARTED) {
        return comm;
    }
    int label = node_of(placed, rank, procs);
    if (!SIMULATED) {
        MPI_Comm node;
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &neighbours);
        MPI_Comm_rank(node, &local_rank);
        MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node);
        MPI_Comm_free(&node);
        MPI_Allreduce(MPI_IN_PLACE, &neighbours, 1, MPI_INT, MPI_MAX, comm);
        if (neighbours < procs && placed == CYCLIC) {
            MPI_Comm by_turns;
            MPI_Comm_split(comm, 0, local_rank * procs + rank, &by_turns);
            MPI_Comm_free(&comm);
            return by_turns;
        }
        label += neighbours < procs ? first * procs : 0;
    }
    collwise_place(comm, label);
    return comm;
}

static void run_cases(const collwise_algorithm *algorithm, MPI_Comm comm, const char *where, unsigned first,
                      unsigned cases, verify_tally *tally) {
    char what[VERIFY_TEXT], complaint[VERIFY_TEXT];
    int procs;
    MPI_Comm_size(comm, &procs);
    for (unsigned i = 0; i < cases; i++) {
        verify_call call = call_of(algorithm, first + i, procs);
        describe(&call, procs, where, what);
        verify_count(tally, what, verify_call_run(&call, comm, complaint), complaint);
    }
    snprintf(what, VERIFY_TEXT, "P = %d (%s), after all cases", procs, where);
    verify_outcome outcome = collwise_procs_objection(algorithm, procs) != NULL ? VERIFY_NOT_APPLICABLE
                             : verify_has_leftovers(comm)                       ? VERIFY_WRONG
                                                                                : VERIFY_RIGHT;
    verify_count(tally, what, outcome, "a message was left unreceived");
}

static unsigned cases_on(int procs, const options *options) {
    return options->quick ? QUICK_CASES : procs >= LARGE_PROCS ? CASES_OF_LARGE : CASES;
}

/* All cases on one communicator. */
static void run_on(const collwise_algorithm *algorithm, const options *options, int procs, communicator kind,
                   placement placed, unsigned first, verify_tally *tally) {
    char where[VERIFY_TEXT / 4];
    unsigned cases = cases_on(procs, options);
    snprintf(where, sizeof where, "%s%s", communicator_names[kind], placement_names[placed]);
    verify_say_started(algorithm->collective, algorithm->name, procs, where);
    MPI_Comm comm = make_communicator(procs, kind);
    if (comm == MPI_COMM_NULL) {
        verify_skip(tally, (int)cases + 1);
    } else {
        comm = place(comm, placed);
        run_cases(algorithm, comm, where, first, cases, tally);
        MPI_Comm_free(&comm);
    }
}

/* Quick runs see one kind of communicator of each size, the kinds by turns. */
static void run_algorithm(const collwise_algorithm *algorithm, const options *options) {
    verify_tally tally;
    unsigned first = 0;
    placement placements = algorithm->by_node ? PLACEMENTS : AS_STARTED + 1;
    verify_start(&tally);
    for (int i = 0; i < options->listed; i++) {
        communicator kind = options->quick ? (communicator)(i % COMMUNICATORS) : PLAIN;
        communicator end = options->quick ? kind + 1 : COMMUNICATORS;
        for (; kind < end; kind++) {
            for (placement placed = AS_STARTED; placed < placements; placed++) {
                run_on(algorithm, options, options->procs[i], kind, placed, first, &tally);
                first += cases_on(options->procs[i], options);
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
        if (strcmp(argv[i], "--by-node") == 0) {
            options.by_node = true;
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
    int world_procs, rank, granted, wanted = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options options = parse(argc, argv, world_procs);
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        if ((each->by_node || !options.by_node) && is_wanted(&options, each->collective, each->name, &wanted)) {
            run_algorithm(each, &options);
        }
    }
    for (int test = 0; !options.by_node && verify_isolation_name(test) != NULL; test++) {
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
