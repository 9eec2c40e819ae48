/* Runs the experiments from which models are estimated, and prints one JSON record a line.
 *
 *     experiments FILE
 *
 * The first line of FILE says how precise measured means have to be:
 *     least_repetitions most_repetitions relative_error quantile...
 * The quantiles are those of Student's t for 1, 2, ... most_repetitions - 1 degrees of freedom. Then there is one
 * experiment a line, fields separated by blanks:
 *     id round kind message_bytes reply_bytes count delay_seconds procs first [second [third]]
 * common/experiments.py defines the kinds; `first`, `second` and `third` are ranks. A collective kind runs on the ranks
 * from 0 to procs - 1, and its line names only the root. Experiments of one round are on consecutive lines and on
 * disjoint processes, and run at the same time; all processes synchronise between rounds.
 *
 * In simulation a round starts at one instant of the simulated clock, which is global and exact, and nothing is
 * repeated. On real MPI the processes of an experiment synchronise before each repetition; the first one measures the
 * time and decides whether to continue. "elapsed_seconds" is the first process's time for all repetitions. */
#include "experiments.h"

#include "internal.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARMUP = 1 };

/* The content of a record. */
typedef struct {
    double seconds, half_width_seconds, elapsed_seconds, repetitions;
} outcome;

void fail(const char *what, const char *detail) {
    fprintf(stderr, "experiments: %s %s\n", what, detail);
    abort_program();
}

/* --- In simulation ----------------------------------------------------------------------------------------------- */

/* Processes without a part take part in the common start and end only. */
static outcome simulate(const part *mine, common_start *start) {
    repetition own = {0, 0};
    if (mine->role >= 0) {
        part_post_receives(mine);
    }
    start_together(start);
    if (mine->role >= 0) {
        own = part_run(mine);
    }
    simulated_barrier(start);
    schedule_next_start(start, MPI_Wtime());
    if (mine->role >= 0) {
        part_take_slowest(&own, mine);
    }
    return (outcome){own.seconds, 0, own.elapsed_seconds, 1};
}

/* --- On real MPI ------------------------------------------------------------------------------------------------- */

typedef struct {
    int repetitions;
    double mean, squares; /* squares: the sum of the squared differences from the mean */
} sample;

static void add(sample *all, double seconds) {
    double before = seconds - all->mean;
    all->repetitions++;
    all->mean += before / all->repetitions;
    all->squares += before * (seconds - all->mean);
}

static double half_width(const sample *all, const precision *wanted) {
    int n = all->repetitions;
    return n < 2 ? INFINITY : wanted->quantiles[n] * sqrt(all->squares / (n - 1) / n);
}

static int enough(const sample *all, const precision *wanted) {
    return all->repetitions >= wanted->most ||
           (all->repetitions >= wanted->least && half_width(all, wanted) < wanted->relative_error * all->mean);
}

/* The first process tells the others whether there is another repetition. */
static int broadcast_continue(const part *mine, int more) {
    if (mine->role > 0) {
        MPI_Recv(&more, 1, MPI_INT, mine->one->ranks[0], TAG_VERDICT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return more;
    }
    for (int i = 1; i < mine->one->procs; i++) {
        /* Of a collective kind the file names only the root. */
        int rank = mine->algorithm == NULL ? mine->one->ranks[i] : (mine->one->ranks[0] + i) % mine->one->procs;
        MPI_Send(&more, 1, MPI_INT, rank, TAG_VERDICT, MPI_COMM_WORLD);
    }
    return more;
}

/* The first process continues when all others have posted their receives. */
static void synchronise(const part *mine) {
    if (mine->algorithm != NULL) {
        collwise_barrier(mine->comm);
        collwise_barrier(mine->comm);
    } else if (mine->role > 0) {
        MPI_Send(NULL, 0, MPI_BYTE, mine->one->ranks[0], TAG_READY, MPI_COMM_WORLD);
    } else {
        for (int i = 1; i < mine->one->procs; i++) {
            MPI_Recv(NULL, 0, MPI_BYTE, mine->one->ranks[i], TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

static outcome measure(const part *mine, const precision *wanted) {
    sample all = {0, 0, 0};
    double start = MPI_Wtime();
    int more = 1;
    for (int i = -WARMUP; more; i++) {
        part_post_receives(mine);
        synchronise(mine);
        repetition own = part_run(mine);
        part_take_slowest(&own, mine);
        if (i >= 0) {
            add(&all, own.seconds);
        }
        more = broadcast_continue(mine, !enough(&all, wanted));
    }
    double width = all.repetitions < 2 ? 0 : half_width(&all, wanted);
    return (outcome){all.mean, width, MPI_Wtime() - start, all.repetitions};
}

/* --- Rounds ------------------------------------------------------------------------------------------------------ */

/* Rank 0 prints all records, so that lines are never mixed. */
static void report(const experiment *one, const outcome *own, int rank) {
    outcome printed = *own;
    if (one->ranks[0] != 0 && rank == one->ranks[0]) {
        MPI_Send(&printed, (int)sizeof printed, MPI_BYTE, 0, TAG_RECORD, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        if (one->ranks[0] != 0) {
            MPI_Recv(&printed, (int)sizeof printed, MPI_BYTE, one->ranks[0], TAG_RECORD, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        printf("{\"id\": %ld, \"seconds\": %.17g, \"half_width_seconds\": %.17g, \"repetitions\": %d, "
               "\"elapsed_seconds\": %.17g}\n",
               one->id, printed.seconds, printed.half_width_seconds, (int)printed.repetitions, printed.elapsed_seconds);
    }
}

static void run_round(const experiment *first, int count, const precision *wanted, common_start *start,
                      cached_communicator *cached) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    part mine = {.role = -1};
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = is_collective(&first[i]) ? communicator_of_first(cached, first[i].procs) : MPI_COMM_NULL;
        if (role_of(&first[i], rank) >= 0) {
            mine = part_make(&first[i], role_of(&first[i], rank), comm);
        }
    }
    outcome own = {0, 0, 0, 0};
    if (SIMULATED) {
        own = simulate(&mine, start);
    } else {
        collwise_barrier(MPI_COMM_WORLD);
        if (mine.role >= 0) {
            own = measure(&mine, wanted);
        }
    }
    for (int i = 0; i < count; i++) {
        report(&first[i], &own, rank);
    }
    fflush(stdout);
    if (mine.role >= 0) {
        part_free(&mine);
    }
}

static void run_all(const experiment_file *file) {
    common_start start = common_start_make();
    cached_communicator cached = {MPI_COMM_NULL, 0};
    for (int i = 0, next; i < file->count; i = next) {
        for (next = i + 1; next < file->count && file->list[next].round == file->list[i].round; next++) {
        }
        run_round(&file->list[i], next - i, &file->wanted, &start, &cached);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 2) {
        fail("usage:", "experiments FILE");
    }
    char *text = read_text(argv[1]);
    if (text == NULL) {
        fail("cannot read", argv[1]);
    }
    experiment_file file = experiment_file_parse(text);
    run_all(&file);
    experiment_file_free(&file);
    free(text);
    MPI_Finalize();
    return 0;
}
