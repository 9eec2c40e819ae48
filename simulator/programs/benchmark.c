/* Times many cases in one execution and prints one JSON record a line as soon as each is known.
 *
 *     benchmark CASES [OPTION...]
 *
 * CASES is a text file, one case a line, fields separated by blanks:
 *     id experiment collective algorithm procs root message_bytes part_bytes count gather_bytes limit_bytes
 * Experiments:
 *     collective    the collective itself, by one of our algorithms; mock-ups after one untimed call, since they call
 *                   MPI's own collectives
 *     builtin       MPI's own collective, after one untimed call; the algorithm's name is ignored
 *     bcast_gather  Nuriyev & Lastovetsky 2021, section IV-C: broadcast of message_bytes, a barrier, linear gather of
 *                   gather_bytes; to be timed on the root's clock
 *     barrier       the barrier alone, whose time is subtracted from bcast_gather's
 *     exchange      the second phase of split-binary alone
 *     tasks         a collective made of tasks, with the times of these on each node's leader (task_times.h)
 * A case runs on the first `procs` processes; the others wait. A line that is wrong, or has no memory, gets a record
 * with an error, and the next one runs.
 *
 * In simulation all processes start a case at one instant of the simulated clock, which is global and exact; "seconds"
 * ends when the last process has finished, "root_seconds" when the root has. On real MPI the measuring library
 * measures; method_options.h has its options, which are read but not used in simulation. */
#include "internal.h"
#include "method_options.h"
#include "task_times.h"
#include "timing.h"
#include "work_line.h"
#include "workload.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long id;
    char experiment[32], collective[32], algorithm[64];
    int procs, root;
    long long message_bytes, part_bytes, gather_bytes, limit_bytes;
    int count;
} bench_case;

static const workload_memory payload_memory = {program_allocate_payload, program_free_payload};

/* The calls of a case: the collective, and for bcast_gather the gather after it. */
typedef struct {
    const collwise_algorithm *algorithm;
    workload work, gather;
    int made; /* all processes have the memory */
    int has_tasks;
    task_times tasks;
} preparation;

enum { MAX_BYTES = 1 << 30 };

static int is(const bench_case *one, const char *experiment) { return strcmp(one->experiment, experiment) == 0; }

/* The error in a case whose fields are in range, or NULL. */
static const char *objection(const bench_case *one) {
    if (is(one, "barrier") || is(one, "exchange")) {
        return NULL;
    }
    task_window window;
    int has_tasks = task_window_read(one->experiment, &window);
    if (!is(one, "collective") && !is(one, "bcast_gather") && !is(one, "builtin") && !has_tasks) {
        return "unknown experiment";
    }
    if (program_workload_kind(one->collective) == COLLWISE_COLLECTIVES) {
        return "unknown collective";
    }
    if (is(one, "bcast_gather") && program_workload_kind(one->collective) != COLLWISE_BCAST) {
        return "bcast_gather takes a broadcast";
    }
    if (is(one, "builtin")) {
        return NULL;
    }
    const collwise_algorithm *algorithm = collwise_find(one->collective, one->algorithm);
    if (algorithm != NULL && has_tasks && strncmp(algorithm->name, "tasks_", strlen("tasks_")) != 0) {
        return "the algorithm is not made of tasks";
    }
    if (algorithm == NULL) {
        return "unknown algorithm";
    }
    if (COLLWISE_IS_SIMULATED && algorithm->real_mpi_only) {
        return "MPI's own non-blocking collectives cannot be simulated";
    }
    int has_within = algorithm->count_parameter != NULL && strcmp(algorithm->count_parameter, "within") == 0;
    int has_window = one->count == COLLWISE_WITHIN_SHARED || one->count == COLLWISE_WITHIN_ONE_SIDED;
    if (COLLWISE_IS_SIMULATED && has_within && has_window) {
        return "shared and one-sided memory of a node cannot be simulated: 'within' has to be 0 or 3";
    }
    const char *wrong_count = collwise_count_objection(algorithm, one->count);
    return wrong_count != NULL ? wrong_count : collwise_procs_objection(algorithm, one->procs);
}

static bench_case parse_case(work_line *line, int world_procs) {
    bench_case one = {.id = program_work_integer(line, "id", 0, LONG_MAX)};
    one.id = program_work_is_right(line) ? one.id : -1;
    program_work_word(line, "experiment", one.experiment, sizeof one.experiment);
    program_work_word(line, "collective", one.collective, sizeof one.collective);
    program_work_word(line, "algorithm", one.algorithm, sizeof one.algorithm);
    one.procs = (int)program_work_integer(line, "procs", 1, world_procs);
    one.root = (int)program_work_integer(line, "root", 0, one.procs - 1);
    one.message_bytes = program_work_integer(line, "message_bytes", 0, MAX_BYTES);
    one.part_bytes = program_work_integer(line, "part_bytes", 0, LLONG_MAX);
    one.count = (int)program_work_integer(line, "count", INT_MIN, INT_MAX);
    one.gather_bytes = program_work_integer(line, "gather_bytes", 0, MAX_BYTES);
    one.limit_bytes = program_work_integer(line, "limit_bytes", 0, LLONG_MAX);
    program_work_end(line);
    const char *wrong = program_work_is_right(line) ? objection(&one) : NULL;
    if (wrong != NULL) {
        program_work_refuse(line, "%s", wrong);
    }
    return one;
}

/* The collective of a case; experiments without one use a broadcast's buffer. */
static collwise_collective kind_of(const bench_case *one) {
    collwise_collective kind = program_workload_kind(one->collective);
    return kind == COLLWISE_COLLECTIVES || is(one, "exchange") ? COLLWISE_BCAST : kind;
}

static collwise_parameters parameters_of(const bench_case *one) {
    return (collwise_parameters){
        .part_bytes = (size_t)one->part_bytes, .count = one->count, .limit_bytes = (size_t)one->limit_bytes};
}

static void run(const bench_case *one, preparation *ready, MPI_Comm comm) {
    if (is(one, "barrier")) {
        collwise_barrier(comm);
    } else if (is(one, "exchange")) {
        collwise_split_binary_exchange(ready->work.call.receive, (size_t)one->message_bytes, one->root,
                                       collwise_private(comm));
    } else if (is(one, "builtin")) {
        program_workload_call_mpi(ready->work.kind, &ready->work.call, NULL);
    } else {
        if (ready->has_tasks) {
            program_task_times_run(&ready->tasks, ready->algorithm, &ready->work.call, parameters_of(one));
        } else {
            collwise_run(ready->algorithm, &ready->work.call, parameters_of(one));
        }
        if (is(one, "bcast_gather")) {
            collwise_barrier(comm);
            collwise_run(collwise_find("gather", "linear"), &ready->gather.call, (collwise_parameters){0});
        }
    }
}

/* In simulation all processes share their memory. */
static int all_made(int made, MPI_Comm comm) {
    double lacks = !made;
    if (!COLLWISE_IS_SIMULATED) {
        program_allreduce_max(&lacks, 1, comm);
    }
    return lacks == 0;
}

static preparation prepare(const bench_case *one, MPI_Comm comm) {
    preparation ready = {.algorithm = collwise_find(one->collective, one->algorithm)};
    ready.has_tasks = task_window_read(one->experiment, &ready.tasks.window);
    int made =
        program_workload_make(&ready.work, kind_of(one), (size_t)one->message_bytes, one->root, comm, payload_memory);
    if (made && is(one, "bcast_gather")) {
        made = program_workload_make(&ready.gather, COLLWISE_GATHER, (size_t)one->gather_bytes, one->root, comm,
                                     payload_memory);
    }
    ready.made = all_made(made, comm);
    if (!ready.made) {
        return ready;
    }
    collwise_private(comm);
    if (is(one, "builtin")) {
        program_workload_call_mpi(ready.work.kind, &ready.work.call, NULL);
    } else if (ready.algorithm != NULL) {
        collwise_prepare(ready.algorithm, &ready.work.call, parameters_of(one));
        if (ready.algorithm->guideline != NULL) {
            collwise_run(ready.algorithm, &ready.work.call, parameters_of(one));
        }
    }
    return ready;
}

static void clean_up(preparation *ready) {
    program_workload_free(&ready->work);
    program_workload_free(&ready->gather);
    program_task_times_free(&ready->tasks);
}

/* On process 0 the times of the tasks, without the first `skipped` calls; none for other experiments. Collective. */
static recorded_samples times_of_tasks(const bench_case *one, const preparation *ready, int skipped) {
    recorded_samples found = {NULL, 0};
    if (ready->has_tasks && ready->tasks.calls > 0) {
        found.values = program_task_times_gather(&ready->tasks, (size_t)skipped, one->root, &found.count);
    }
    return found;
}

/* Processes that do not take part, or finish early, wait in the simulator's barrier, which sends no messages: those of
 * an MPI barrier would share links with what is still running. */
static void simulate(const bench_case *one, preparation *ready, MPI_Comm comm, common_start *start) {
    int world_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    program_start_together(start);
    double ends[2] = {-INFINITY, -INFINITY};
    if (comm != MPI_COMM_NULL) {
        run(one, ready, comm);
        ends[0] = MPI_Wtime();
        ends[1] = world_rank == one->root ? ends[0] : -INFINITY;
    }
    program_simulated_barrier(start);
    program_allreduce_max(ends, 2, MPI_COMM_WORLD);
    recorded_samples tasks = {NULL, 0};
    if (comm != MPI_COMM_NULL) {
        tasks = times_of_tasks(one, ready, 0);
    }
    if (world_rank == 0) {
        printf("{\"id\": %ld, \"seconds\": %.17g, \"root_seconds\": %.17g, \"repetitions\": 1", one->id,
               ends[0] - start->seconds, ends[1] - start->seconds);
        if (ready->has_tasks) {
            program_print_samples(tasks.values, tasks.count);
        }
        printf("}\n");
    }
    free(tasks.values);
    schedule_next_start(start, ends[0]);
}

/* The function that the measuring library calls. */
typedef struct {
    const bench_case *one;
    preparation ready;
    MPI_Comm comm;
} operation;

static void operate(void *context) {
    operation *all = context;
    run(all->one, &all->ready, all->comm);
}

/* The state between cases: the communicator, its session, and t1 of the operation for which it was estimated last. */
typedef struct {
    cached_communicator communicator;
    cw_session *session;
    bench_case steady;
    double t1_seconds;
    common_start start;
} bench_state;

static MPI_Comm communicator_for(bench_state *state, int procs) {
    if (state->communicator.procs != procs && state->session != NULL) {
        cw_close(state->session);
        state->session = NULL;
    }
    MPI_Comm comm = program_communicator_of_first(&state->communicator, procs);
    if (!COLLWISE_IS_SIMULATED && comm != MPI_COMM_NULL && state->session == NULL) {
        state->session = cw_open(comm, NULL, NULL);
        if (state->session == NULL) {
            program_fail("benchmark", "out of memory for", "a session");
        }
        state->steady.procs = 0;
    }
    return comm;
}

static int differ_by_size_only(bench_case left, bench_case right) {
    return strcmp(left.experiment, right.experiment) == 0 && strcmp(left.collective, right.collective) == 0 &&
           strcmp(left.algorithm, right.algorithm) == 0 && left.procs == right.procs && left.root == right.root &&
           left.part_bytes == right.part_bytes && left.count == right.count &&
           left.gather_bytes == right.gather_bytes && left.limit_bytes == right.limit_bytes;
}

/* t1 of NREP, from the case with one byte. */
static cw_status steady_seconds(bench_state *state, const bench_case *one, MPI_Comm comm,
                                const method_options *options) {
    if (differ_by_size_only(state->steady, *one)) {
        return CW_OK;
    }
    bench_case small = *one;
    small.message_bytes = one->message_bytes < 1 ? 0 : 1;
    operation call = {&small, prepare(&small, comm), comm};
    cw_status status = CW_OUT_OF_MEMORY;
    if (call.ready.made) {
        status = cw_nrep_seconds(state->session, one->root, operate, &call, &options->method, &options->nrep,
                                 &state->t1_seconds);
    }
    clean_up(&call.ready);
    if (status == CW_OK) {
        state->steady = *one;
    }
    return status;
}

static void measure(bench_state *state, const bench_case *one, MPI_Comm comm, const method_options *options) {
    cw_result result = {.status = CW_OK};
    recorded_samples tasks = {NULL, 0};
    if (options->by_nrep) {
        result.status = steady_seconds(state, one, comm, options);
    }
    if (result.status == CW_OK) {
        operation call = {one, prepare(one, comm), comm};
        if (!call.ready.made) {
            result.status = CW_OUT_OF_MEMORY;
        } else if (options->by_nrep) {
            cw_measure_nrep(state->session, one->root, operate, &call, &options->method, &options->nrep,
                            state->t1_seconds, &result);
        } else {
            cw_measure(state->session, one->root, operate, &call, &options->method, &result);
        }
        tasks = times_of_tasks(one, &call.ready, options->method.warmup);
        clean_up(&call.ready);
    }
    program_report_case(one->id, one->root, comm, options, &result, state->t1_seconds, &tasks);
    free(tasks.values);
    cw_result_free(&result);
}

/* In simulation, processes outside of `comm` take part in the common start and end only. */
static void run_case(bench_state *state, const bench_case *one, MPI_Comm comm, const method_options *options) {
    if (!COLLWISE_IS_SIMULATED) {
        if (comm != MPI_COMM_NULL) {
            measure(state, one, comm, options);
        }
        return;
    }
    preparation ready = {0};
    if (comm != MPI_COMM_NULL) {
        ready = prepare(one, comm);
        if (!ready.made) {
            program_fail("benchmark", "out of memory for", one->algorithm);
        }
    }
    simulate(one, &ready, comm, &state->start);
    if (comm != MPI_COMM_NULL) {
        clean_up(&ready);
    }
}

static void run_cases(char *text, const method_options *options) {
    int world_procs, world_rank;
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    bench_state state = {.communicator = {MPI_COMM_NULL, 0}, .start = program_common_start()};
    for (work_line line; program_work_next(&text, &line);) {
        bench_case one = parse_case(&line, world_procs);
        if (program_work_is_right(&line)) {
            run_case(&state, &one, communicator_for(&state, one.procs), options);
        } else if (world_rank == 0) {
            program_work_print_refusal(stdout, one.id, &line);
        }
        fflush(stdout);
    }
    if (state.session != NULL) {
        cw_close(state.session);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    method_options options;
    char *text = program_read_work("benchmark", argv, &options);
    collwise_limit_memory(options.memory);
    run_cases(text, &options);
    free(text);
    MPI_Finalize();
    return 0;
}
