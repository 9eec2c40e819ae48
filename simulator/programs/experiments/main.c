/* Runs point-to-point experiments, and a few collectives that models are estimated from; prints one JSON record a line.
 *
 *     experiments FILE [OPTION...]
 *
 * There is one experiment a line, fields separated by blanks:
 *     id round kind message_bytes reply_bytes count delay_seconds repetitions procs first [second [third...]]
 * common/experiments.py defines the kinds; `first`, `second` and so on are ranks. A collective kind runs on the ranks
 * from 0 to procs - 1, and its line names only the root. Of several pairs side by side the first one's time is printed.
 * A line that is wrong gets a record with an error and is left out.
 * Experiments of one round are on consecutive lines and on disjoint processes, and run at the same time; all processes
 * synchronise between rounds.
 *
 * In simulation a round starts at one instant of the simulated clock, which is global and exact, and nothing is
 * repeated. On real MPI the processes of an experiment synchronise before each repetition; the first one measures the
 * time. Repetitions are as many as the line says or, if it says 0, until the mean is as precise as the options
 * (method_options.h) ask for, which the first process decides. "elapsed_seconds" is its time for all repetitions. */
#include "experiments.h"

#include "internal.h"
#include "method_options.h"
#include "statistics.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

enum { WARMUP = 1 };

/* The output for an experiment. */
typedef struct {
    double seconds, half_width_seconds, elapsed_seconds;
    int repetitions;
    double *samples; /* NULL: none */
} outcome;

/* --- In simulation ----------------------------------------------------------------------------------------------- */

/* Processes without a part take part in the common start and end only. */
static outcome simulate(const part *mine, common_start *start) {
    repetition own = {0, 0};
    if (mine->role >= 0) {
        program_part_post_receives(mine);
    }
    program_start_together(start);
    if (mine->role >= 0) {
        own = program_part_run(mine);
    }
    program_simulated_barrier(start);
    schedule_next_start(start, MPI_Wtime());
    if (mine->role >= 0) {
        program_part_take_slowest(&own, mine);
    }
    return (outcome){own.seconds, 0, own.elapsed_seconds, 1, NULL};
}

/* --- On real MPI ------------------------------------------------------------------------------------------------- */

static int enough(const cw_running *all, const cw_method *method) {
    return all->count >= method->max_repetitions ||
           (all->count >= method->min_repetitions &&
            cw_half_width(all, method->confidence) < method->relative_error * all->mean);
}

/* The first process tells the others whether there is another repetition. */
static int broadcast_continue(const part *mine, int more) {
    if (mine->role > 0) {
        MPI_Recv(&more, 1, MPI_INT, mine->ranks[0], TAG_VERDICT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return more;
    }
    for (int i = 1; i < mine->procs; i++) {
        /* For a collective kind the file names only the root. */
        int rank = mine->algorithm == NULL ? mine->ranks[i] : (mine->ranks[0] + i) % mine->procs;
        MPI_Send(&more, 1, MPI_INT, rank, TAG_VERDICT, MPI_COMM_WORLD);
    }
    return more;
}

static outcome measure(const part *mine, const method_options *options) {
    const cw_method *method = &options->method;
    cw_running all = {0, 0, 0};
    int wanted = mine->one->repetitions, more = 1;
    size_t most = (size_t)(wanted > 0 ? wanted : method->max_repetitions);
    double *samples = options->samples ? collwise_allocate(most * sizeof *samples, MPI_COMM_WORLD) : NULL;
    double start = MPI_Wtime();
    for (int i = mine->one->kind == EAGER_LIMIT ? 0 : -WARMUP; more; i++) {
        program_part_post_receives(mine);
        program_part_synchronise(mine);
        repetition own = program_part_run(mine);
        program_part_take_slowest(&own, mine);
        if (i >= 0) {
            if (samples != NULL) {
                samples[i] = own.seconds;
            }
            cw_running_add(&all, own.seconds);
        }
        more = wanted > 0 ? all.count < wanted : broadcast_continue(mine, !enough(&all, method));
    }
    double width = cw_half_width(&all, method->confidence);
    return (outcome){all.mean, width, MPI_Wtime() - start, all.count, samples};
}

/* --- Rounds ------------------------------------------------------------------------------------------------------ */

static void print_outcome(long id, const outcome *printed) {
    printf("{\"id\": %ld", id);
    program_print_number("seconds", printed->seconds);
    program_print_number("half_width_seconds", printed->half_width_seconds);
    program_print_number("elapsed_seconds", printed->elapsed_seconds);
    printf(", \"repetitions\": %d", printed->repetitions);
    if (printed->samples != NULL) {
        program_print_samples(printed->samples, printed->repetitions);
    }
    printf("}\n");
}

/* Rank 0 prints all records, so that lines are never mixed. */
static void report(const experiment *one, const outcome *own, int has_samples, int rank) {
    int first = one->ranks[0];
    if (first == 0) {
        if (rank == 0) {
            print_outcome(one->id, own);
        }
    } else if (rank == first) {
        MPI_Send(own, (int)sizeof *own, MPI_BYTE, 0, TAG_RECORD, MPI_COMM_WORLD);
        if (has_samples) {
            MPI_Send(own->samples, own->repetitions, MPI_DOUBLE, 0, TAG_RECORD, MPI_COMM_WORLD);
        }
    } else if (rank == 0) {
        outcome printed;
        MPI_Recv(&printed, (int)sizeof printed, MPI_BYTE, first, TAG_RECORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printed.samples = NULL;
        if (has_samples) {
            printed.samples = collwise_allocate((size_t)printed.repetitions * sizeof(double), MPI_COMM_WORLD);
            MPI_Recv(printed.samples, printed.repetitions, MPI_DOUBLE, first, TAG_RECORD, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        print_outcome(one->id, &printed);
        free(printed.samples);
    }
}

static void run_round(const experiment *first, int count, const method_options *options, common_start *start,
                      cached_communicator *cached) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    part mine = {.role = -1};
    for (int i = 0; i < count; i++) {
        MPI_Comm comm =
            program_is_collective(&first[i]) ? program_communicator_of_first(cached, first[i].procs) : MPI_COMM_NULL;
        part its = program_part_make(&first[i], rank, comm);
        mine = its.role >= 0 ? its : mine;
    }
    outcome own = {0};
    if (COLLWISE_IS_SIMULATED) {
        own = simulate(&mine, start);
    } else {
        collwise_barrier(MPI_COMM_WORLD);
        if (mine.role >= 0) {
            own = measure(&mine, options);
        }
    }
    for (int i = 0; i < count; i++) {
        report(&first[i], &own, !COLLWISE_IS_SIMULATED && options->samples, rank);
    }
    fflush(stdout);
    free(own.samples);
    program_part_free(&mine);
}

static void run_all(const experiment_file *file, const method_options *options) {
    common_start start = program_common_start();
    cached_communicator cached = {MPI_COMM_NULL, 0};
    for (int i = 0, next; i < file->count; i = next) {
        for (next = i + 1; next < file->count && file->list[next].round == file->list[i].round; next++) {
        }
        run_round(&file->list[i], next - i, options, &start, &cached);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    method_options options;
    char *text = program_read_work("experiments", argv, &options);
    experiment_file file = program_experiments_parse(text);
    run_all(&file, &options);
    program_experiments_free(&file);
    free(text);
    MPI_Finalize();
    return 0;
}
