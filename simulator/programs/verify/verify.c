/* Runs every algorithm of the registry on real data and compares each byte with the collective's definition.
 *
 *     verify [--collective NAME] [--algorithm NAME] [--by-node] [--procs 1,2,5] [--quick] [--skip N]
 *     verify --seed N --calls N --directory DIR [--interposed] [--collective NAME] [--algorithm NAME]
 *
 * The second form makes a random sequence of calls (sequence.c), with --interposed by the functions of libcollwise,
 * which must have been preloaded. It prints no results: a process that gets something wrong ends the program, and DIR
 * has a board that says where each of them is (board.c). The first form runs all cases.
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

#include "options.h"
#include "timing.h"
#include "work_line.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LISTED = 64 };

/* Cases on each communicator: fewer on large ones, whose calls take longer to simulate. */
enum { QUICK_CASES = 8, CASES = 19, CASES_OF_LARGE = 10, LARGE_PROCS = 18 };

typedef struct {
    int by_node, quick;
    int skip;
    verify_sequence_options sequence; /* of no calls: the cases are run, of its algorithms */
    int listed;                       /* 0: no list is given */
    int procs[MAX_LISTED];
} options;

/* As many ints as there is room for, or fewer; cases.c says more of their number. */
enum { ONE_BELOW_PROCS = -1, ROOM = 1 << 30 };
static const int int_counts[] = {0, 1, 2, 7, 1009, ONE_BELOW_PROCS, ROOM};

typedef enum { PLAIN, REVERSED, DUPLICATE, COMMUNICATORS } communicator;
static const char *const communicator_names[] = {"ranks as started", "ranks reversed", "duplicated communicator"};

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

/* Real nodes cannot share the memory of others: where there are several, they are divided, and for a cyclic placement
 * the ranks go round them by turns. Simulated nodes have one process each here, and share nothing. */
static MPI_Comm place(MPI_Comm comm, verify_placement placed) {
    int rank, procs, neighbours, first, local_rank;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &procs);
    if (placed == VERIFY_AS_STARTED) {
        return comm;
    }
    int label = verify_node_of(placed, rank, procs);
    if (!COLLWISE_IS_SIMULATED) {
        MPI_Comm node;
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
        MPI_Comm_size(node, &neighbours);
        MPI_Comm_rank(node, &local_rank);
        MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node);
        MPI_Comm_free(&node);
        MPI_Allreduce(MPI_IN_PLACE, &neighbours, 1, MPI_INT, MPI_MAX, comm);
        if (neighbours < procs && placed == VERIFY_CYCLIC) {
            MPI_Comm by_turns;
            MPI_Comm_split(comm, 0, local_rank * procs + rank, &by_turns);
            MPI_Comm_free(&comm);
            return by_turns;
        }
        label += neighbours < procs ? first * procs : 0;
    }
    collwise_place(comm, label, verify_socket_of(placed, rank, procs));
    return comm;
}

/* Case i takes entry i of every list. */
static verify_call call_of(const collwise_algorithm *algorithm, unsigned index, int procs) {
    unsigned at[VERIFY_LISTS];
    int ints = int_counts[index % (sizeof int_counts / sizeof *int_counts)];
    for (int list = 0; list < VERIFY_LISTS; list++) {
        at[list] = index;
    }
    return verify_call_of(algorithm, index, at, ints == ONE_BELOW_PROCS ? procs - 1 : ints, procs);
}

static void describe(const verify_call *call, int procs, const char *where, char text[VERIFY_TEXT]) {
    snprintf(text, VERIFY_TEXT, "P = %d (%s), case %u", procs, where, call->serial);
    verify_describe_data(call, text);
    verify_describe_parameters(call->algorithm, call->with, text);
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
                   verify_placement placed, unsigned first, verify_tally *tally) {
    char where[VERIFY_TEXT / 4];
    unsigned cases = cases_on(procs, options);
    snprintf(where, sizeof where, "%s%s", communicator_names[kind], verify_placement_names[placed]);
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

/* Quick runs see one kind of communicator of each size, the kinds by turns, and besides uneven nodes one of the other
 * placements by turns; where they are asked for alone, algorithms by node see all placements. */
static bool is_seen(verify_placement placed, int turn, const options *options) {
    static const verify_placement others[] = {VERIFY_AS_STARTED, VERIFY_CYCLIC, VERIFY_APART};
    return !options->quick || options->by_node || placed == VERIFY_UNEVEN ||
           placed == others[turn % (int)(sizeof others / sizeof *others)];
}

static void run_algorithm(const collwise_algorithm *algorithm, const options *options) {
    verify_tally tally;
    unsigned first = 0;
    verify_placement placements = algorithm->by_node ? VERIFY_PLACEMENTS : VERIFY_AS_STARTED + 1;
    verify_start(&tally);
    for (int i = 0; i < options->listed; i++) {
        communicator kind = options->quick ? (communicator)(i % COMMUNICATORS) : PLAIN;
        communicator end = options->quick ? kind + 1 : COMMUNICATORS;
        for (; kind < end; kind++) {
            for (verify_placement placed = VERIFY_AS_STARTED; placed < placements; placed++) {
                if (placements == VERIFY_AS_STARTED + 1 || is_seen(placed, i, options)) {
                    run_on(algorithm, options, options->procs[i], kind, placed, first, &tally);
                    first += cases_on(options->procs[i], options);
                }
            }
        }
    }
    verify_report(&tally, algorithm->collective, algorithm->name);
}

static void list_procs(options *options, const char *text, work_line *read) {
    work_line line = program_work_line_of(text);
    do {
        options->procs[options->listed++] = (int)program_work_integer(&line, "a number of --procs", 1, INT_MAX);
    } while (!program_work_is_over(&line) && options->listed < MAX_LISTED);
    program_work_end(&line);
    if (!program_work_is_right(&line)) {
        *read = line;
    }
}

/* Without a list, it is that of all process counts. */
static void complete_procs(options *options, int world_procs) {
    if (options->listed == 0) {
        for (; options->listed < world_procs && options->listed < MAX_LISTED; options->listed++) {
            options->procs[options->listed] = options->listed + 1;
        }
    }
    for (int i = 0; i < options->listed; i++) {
        if (options->procs[i] > world_procs) {
            fprintf(stderr, "verify: --procs has more than the %d processes started\n", world_procs);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

static options parse(char **words) {
    options found = {0};
    const char *procs = NULL;
    verify_sequence_options *sequence = &found.sequence;
    const program_option all[] = {{.name = "--collective", OPTION_TEXT, &sequence->collective, .words = "NAME"},
                                  {.name = "--algorithm", OPTION_TEXT, &sequence->algorithm, .words = "NAME"},
                                  {.name = "--by-node", OPTION_FLAG, &found.by_node},
                                  {.name = "--procs", OPTION_TEXT, &procs, .words = "1,2,5"},
                                  {.name = "--quick", OPTION_FLAG, &found.quick},
                                  {"--skip", OPTION_INT, &found.skip, 0, INT_MAX, NULL},
                                  {"--seed", OPTION_LONG, &sequence->seed, 0, UINT32_MAX, NULL},
                                  {"--calls", OPTION_INT, &sequence->calls, 0, INT_MAX, NULL},
                                  {.name = "--directory", OPTION_TEXT, &sequence->directory, .words = "DIR"},
                                  {.name = "--interposed", OPTION_FLAG, &sequence->is_interposed},
                                  {0}};
    work_line read = program_read_options(all, words);
    if (procs != NULL && program_work_is_right(&read)) {
        list_procs(&found, procs, &read);
    }
    if (sequence->calls > 0 && sequence->directory == NULL) {
        program_work_refuse(&read, "--calls needs --directory");
    }
    if (!program_work_is_right(&read)) {
        program_print_usage("verify", all, &read);
        exit(2);
    }
    return found;
}

static bool is_wanted(const options *options, const char *collective, const char *algorithm, int *wanted) {
    const verify_sequence_options *only = &options->sequence;
    if ((only->collective != NULL && strcmp(only->collective, collective) != 0) ||
        (only->algorithm != NULL && strcmp(only->algorithm, algorithm) != 0)) {
        return false;
    }
    return ++*wanted > options->skip;
}

static void run_all(const options *options, int world_procs) {
    int wanted = 0;
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        if ((each->by_node || !options->by_node) && is_wanted(options, each->collective, each->name, &wanted)) {
            run_algorithm(each, options);
        }
    }
    for (int test = 0; !options->by_node && verify_isolation_name(test) != NULL; test++) {
        if (is_wanted(options, "isolation", verify_isolation_name(test), &wanted)) {
            verify_isolation(test, world_procs);
        }
    }
    if (wanted == 0) {
        fprintf(stderr, "verify: no such algorithm in the catalogue\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int argc, char **argv) {
    int world_procs, rank, granted;
    options options = parse(argv + 1);
    if (options.sequence.calls > 0) {
        verify_sequence_set_up(&options.sequence);
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &granted);
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (options.sequence.calls > 0) {
        verify_sequence_run(&options.sequence);
    } else {
        complete_procs(&options, world_procs);
        run_all(&options, world_procs);
    }
    if (rank == 0) {
        printf("{\"finished\": true}\n");
    }
    MPI_Finalize();
    return 0;
}
