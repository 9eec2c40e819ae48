/* Recording a case: each process's function is called in turn, and its MPI calls become the words of its program.
 * recording/ has the MPI that does so, and what the algorithms need besides it: memory, copies, reductions and the
 * private communicator. */
#include "library_calls.h"
#include "mock_ups.h"
#include "recording/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- The collective of one process -------------------------------------------------------------------------------- */

/* Calls the algorithm as algorithms/collwise.c does for contiguous data, whose own blocks it copies. */
static void call_algorithm(const recording *to, const collwise_algorithm *algorithm, const recorded_call *call,
                           collwise_parameters with) {
    int root = call->root, at_root = to->now.rank == root;
    const MPI_Comm comm = MPI_COMM_WORLD;
    char *send = recording_payload(0), *receive = recording_payload(1);
    const collwise_operation *op = call->op;
    size_t bytes = call->message_bytes, elements = op == NULL ? 0 : bytes / op->element_bytes;
    size_t copied = call->in_place ? 0 : bytes;
    if (algorithm->kind >= COLLWISE_REDUCE && bytes == 0) {
        return;
    }
    if (collwise_has_mock_up_form(algorithm)) {
        algorithm->mock_up(send, receive, elements, op, comm);
        return;
    }
    switch (algorithm->kind) {
    case COLLWISE_BCAST:
        if (bytes > 0) {
            algorithm->bcast(receive, bytes, root, comm, with);
        }
        break;
    case COLLWISE_GATHER:
        recording_copy(at_root ? copied : 0);
        if (bytes > 0) {
            algorithm->gather(send, receive, bytes, root, comm, with);
        }
        break;
    case COLLWISE_GATHERV:
        recording_copy(at_root ? copied : 0);
        algorithm->gatherv(send, bytes, receive, call->offsets, root, comm, with);
        break;
    case COLLWISE_SCATTER:
        if (bytes > 0) {
            algorithm->scatter(send, receive, bytes, root, comm, with);
        }
        recording_copy(at_root ? copied : 0);
        break;
    case COLLWISE_SCATTERV:
        algorithm->scatterv(send, call->offsets, receive, bytes, root, comm, with);
        recording_copy(at_root ? copied : 0);
        break;
    case COLLWISE_ALLGATHER:
        recording_copy(copied);
        if (bytes > 0) {
            algorithm->allgather(receive, bytes, comm, with);
        }
        break;
    case COLLWISE_ALLGATHERV:
        recording_copy(copied);
        if (call->offsets[to->made->procs] > 0) {
            algorithm->allgatherv(receive, call->offsets, comm, with);
        }
        break;
    case COLLWISE_ALLTOALL:
        recording_copy(copied);
        if (bytes > 0) {
            algorithm->alltoall(send, receive, bytes, comm, with);
        }
        break;
    case COLLWISE_ALLTOALLV:
        recording_copy(copied);
        algorithm->alltoallv(send, call->offsets, receive, call->offsets, comm, with);
        break;
    case COLLWISE_BARRIER:
        algorithm->barrier(comm, with);
        break;
    case COLLWISE_REDUCE:
        algorithm->reduce(send, receive, elements, op, root, comm, with);
        break;
    case COLLWISE_ALLREDUCE:
    case COLLWISE_SCAN:
    case COLLWISE_EXSCAN:
        recording_copy(copied);
        algorithm->allreduce(receive, elements, op, comm, with);
        break;
    case COLLWISE_REDUCE_SCATTER:
    case COLLWISE_REDUCE_SCATTER_BLOCK:
        recording_copy(call->offsets[to->made->procs] * op->element_bytes);
        algorithm->reduce_scatter(receive, call->offsets, send, op, comm, with);
        break;
    case COLLWISE_COLLECTIVES:
        break;
    }
}

static void record_case_call(const recording *to, const collwise_algorithm *algorithm, size_t bytes,
                             collwise_parameters with) {
    call_algorithm(to, algorithm,
                   &(recorded_call){.kind = algorithm->kind,
                                    .message_bytes = bytes,
                                    .root = to->wanted->root,
                                    .offsets = to->offsets,
                                    .op = &to->op},
                   with);
}

/* The library's choice for a call. Most calls are those that other processes made before. */
static const library_choice *choice_for(recording *to, const recorded_call *call) {
    library_choice *known = &to->library[call->kind];
    const char *collective = collwise_collective_names[call->kind];
    schedule_choice chosen = {.count = 0};
    if (known->algorithm != NULL && known->message_bytes == call->message_bytes) {
        return known;
    }
    if (to->wanted->library == NULL) {
        recording_fail(to, "no decisions of an MPI library were given, whose %s this mock-up calls", collective);
    }
    if (!to->wanted->library(collective, to->made->procs, call->message_bytes, &chosen)) {
        recording_fail(to, "what the MPI library runs for its %s of %llu bytes is not known", collective,
                       (unsigned long long)call->message_bytes);
    }
    const collwise_algorithm *found = collwise_find(collective, chosen.algorithm);
    if (found == NULL || found->guideline != NULL || collwise_procs_objection(found, to->made->procs) != NULL) {
        recording_fail(to, "the MPI library's %s cannot be %s", collective, chosen.algorithm);
    }
    *known = (library_choice){.algorithm = found,
                              .message_bytes = call->message_bytes,
                              .with = {.part_bytes = chosen.part_bytes,
                                       .count = chosen.count == 0 ? found->default_count : chosen.count,
                                       .limit_bytes = chosen.limit_bytes}};
    return known;
}

static void record_library_call(const recorded_call *call) {
    const library_choice *choice = choice_for(recording_now, call);
    call_algorithm(recording_now, choice->algorithm, call, choice->with);
}

static int is(const schedule_case *wanted, const char *experiment) {
    return strcmp(wanted->experiment, experiment) == 0;
}

static void call_experiment(const recording *to) {
    const schedule_case *wanted = to->wanted;
    if (!to->program_is_collective && is(wanted, "barrier")) {
        collwise_barrier_bruck(MPI_COMM_WORLD, (collwise_parameters){0});
    } else if (!to->program_is_collective && is(wanted, "exchange")) {
        collwise_split_binary_exchange(recording_payload(1), wanted->message_bytes, wanted->root, MPI_COMM_WORLD);
    } else {
        collwise_parameters with = {.part_bytes = wanted->part_bytes,
                                    .count = wanted->count == 0 ? to->algorithm->default_count : wanted->count,
                                    .limit_bytes = wanted->limit_bytes};
        record_case_call(to, to->algorithm, wanted->message_bytes, with);
        if (!to->program_is_collective && is(wanted, "bcast_gather")) {
            collwise_barrier_bruck(MPI_COMM_WORLD, (collwise_parameters){0});
            record_case_call(to, collwise_find("gather", "linear"), wanted->gather_bytes, (collwise_parameters){0});
        }
    }
}

static void begin_process(recording *to, int rank) {
    if (schedule_is_stopped()) {
        recording_fail(to, "it was stopped");
    }
    to->now = (process){.rank = rank, .words = to->now.words, .room = to->now.room};
    recording_begin_attempt(to);
}

static void end_process(recording *to) {
    process *done = &to->now;
    if (!done->is_abandoned) {
        recording_keep(to, done);
        to->made->messages += done->messages;
        to->made->bytes += done->bytes;
        to->exchanges[done->rank].is_recorded = 1;
    }
    recording_forget_hierarchy(done);
    recording_free_all(done);
    free(done->integers);
    done->integers = NULL;
}

static void record_process(recording *to, int rank) {
    begin_process(to, rank);
    if (to->made->procs > 1 && setjmp(to->now.ends) == 0) {
        call_experiment(to);
        recording_add_copies();
    }
    end_process(to);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* Of the messages of all processes together. */
#define MAX_BYTES ((uint64_t)4 << 40)

/* Why the case cannot be recorded, or NULL. */
static const char *objection(const schedule_case *wanted, const collwise_algorithm *algorithm) {
    int procs = wanted->procs;
    if (procs < 1 || procs >= 1 << 28) {
        return "procs is not between 1 and 2^28 - 1";
    }
    if (wanted->root < 0 || wanted->root >= procs) {
        return "root is not a rank";
    }
    if (wanted->message_bytes > MAX_BYTES / (uint64_t)procs || wanted->message_bytes > 1 << 30) {
        return "sizes must be between 0 and 1 GiB, and those of all processes together at most 4 TiB";
    }
    for (int rank = 0; wanted->node_of != NULL && rank < procs; rank++) {
        if (wanted->node_of[rank] < 0) {
            return "a process is on a node with a negative number";
        }
    }
    if (is(wanted, "barrier") || is(wanted, "exchange")) {
        return NULL;
    }
    task_window window;
    int has_tasks = task_window_read(wanted->experiment, &window);
    if (!is(wanted, "collective") && !is(wanted, "bcast_gather") && !has_tasks) {
        return "unknown experiment";
    }
    if (has_tasks && algorithm != NULL && strncmp(algorithm->name, "tasks_", strlen("tasks_")) != 0) {
        return "the algorithm is not made of tasks";
    }
    if (algorithm == NULL) {
        return "unknown algorithm";
    }
    const char *wrong_count = collwise_count_objection(algorithm, wanted->count);
    return wrong_count != NULL ? wrong_count : collwise_procs_objection(algorithm, procs);
}

/* Blocks of equal size in bytes; for a reduce_scatter, blocks in elements, into which the message is split. */
static size_t *make_offsets(const recording *to) {
    const schedule_case *wanted = to->wanted;
    size_t procs = (size_t)wanted->procs, *offsets = recording_checked(malloc((procs + 1) * sizeof *offsets));
    collwise_collective kind = to->algorithm == NULL ? COLLWISE_COLLECTIVES : to->algorithm->kind;
    size_t elements = wanted->message_bytes / to->op.element_bytes;
    offsets[0] = 0;
    for (size_t i = 0; i < procs; i++) {
        size_t block = wanted->message_bytes;
        if (kind == COLLWISE_REDUCE_SCATTER) {
            block = elements / procs + (i < elements % procs);
        } else if (kind == COLLWISE_REDUCE_SCATTER_BLOCK) {
            block = elements;
        }
        offsets[i + 1] = offsets[i] + block;
    }
    return offsets;
}

/* Records the processes of the queue, and those again that needed something of others first. */
static void record_queue(recording *to) {
    for (int rank = recording_next(to); rank != NOBODY; rank = recording_next(to)) {
        if (!to->exchanges[rank].is_recorded) {
            record_process(to, rank);
        }
    }
}

static void record_all(recording *to) {
    int procs = to->made->procs, alone = to->processes_alone, period = recording_period(to);
    if (period < procs) {
        for (int i = 0; i < period; i++) {
            record_process(to, (to->wanted->root + i) % procs);
        }
        for (int i = period; i < procs; i++) {
            to->made->program_of[(to->wanted->root + i) % procs] =
                to->made->program_of[(to->wanted->root + i % period) % procs];
        }
        to->made->messages *= (uint64_t)(procs / period);
        to->made->bytes *= (uint64_t)(procs / period);
        return;
    }
    int count = alone > 0 && alone < procs ? alone : procs;
    if (count < procs) {
        recording_keep(to, &(process){.rank = 0});
    }
    for (int i = 0; i < count; i++) {
        recording_queue(to, (to->wanted->root + i) % procs);
    }
    record_queue(to);
    for (int i = 0; i < count; i++) {
        int rank = (to->wanted->root + i) % procs;
        if (!to->exchanges[rank].is_recorded && to->max_words == 0) {
            recording_fail(
                to,
                "process %d waits for ever for processes that do not split a communicator with it or send it nothing",
                rank);
        }
        to->stops = 1;
        recording_queue(to, rank);
    }
    record_queue(to);
}

static void release(recording *to) {
    recording_free_exchanges(to);
    recording_free(to->nodes);
    recording_free(to->sockets);
    recording_communicators_free(to->communicators);
    free(to->levels);
    free(to->now.words);
    recording_forget_hierarchy(&to->now);
    recording_free_all(&to->now);
    free(to->now.integers);
    free(to->offsets);
    free(to->program_table);
    free(to->size_table);
    free(to->seen_by);
    free(to->sources);
}

enum { SIZE_PLACES = 64 };

static schedule *record(const schedule_case *wanted, const collwise_algorithm *algorithm, int processes_alone,
                        uint64_t max_words, char *problem, size_t problem_bytes) {
    const char *wrong = objection(wanted, algorithm);
    if (wrong != NULL) {
        snprintf(problem, problem_bytes, "%s", wrong);
        return NULL;
    }
    recording *to = calloc(1, sizeof *to), *before = recording_now;
    if (to == NULL) {
        snprintf(problem, problem_bytes, "out of memory");
        return NULL;
    }
    *to = (recording){.wanted = wanted,
                      .processes_alone = processes_alone,
                      .max_words = max_words,
                      .algorithm = algorithm,
                      .program_is_collective = is(wanted, "collective"),
                      .record_library_call = record_library_call,
                      .problem = problem,
                      .problem_bytes = problem_bytes};
    if (task_window_read(wanted->experiment, &to->window)) {
        to->has_tasks = 1;
        to->tasks = (collwise_observer){.first_task = to->window.first,
                                        .end_task = to->window.end,
                                        .steps = to->window.steps[0] == '\0' ? NULL : to->window.steps};
    }
    size_t procs = (size_t)wanted->procs, places = SIZE_PLACES;
    while (places < 4 * procs) {
        places *= 2;
    }
    to->program_places = places;
    to->size_places = SIZE_PLACES;
    to->op = (collwise_operation){.element_bytes = wanted->message_bytes % sizeof(double) == 0 ? sizeof(double) : 1,
                                  .commutative = 1,
                                  .contiguous = 1};
    recording_now = to;
    if (setjmp(to->give_up) == 0) {
        to->made = recording_checked(calloc(1, sizeof *to->made));
        to->made->procs = wanted->procs;
        to->made->program_of = recording_checked(calloc(procs, sizeof *to->made->program_of));
        to->exchanges = recording_checked(calloc(procs, sizeof *to->exchanges));
        to->queue = recording_checked(malloc(procs * sizeof *to->queue));
        to->program_table = recording_checked(calloc(to->program_places, sizeof *to->program_table));
        to->size_table = recording_checked(calloc(to->size_places, sizeof *to->size_table));
        to->seen_by = recording_checked(calloc(procs, sizeof *to->seen_by));
        to->sources = recording_checked(calloc(procs, sizeof *to->sources));
        to->offsets = make_offsets(to);
        to->made->is_mirrored = recording_is_mirrored(to);
        record_all(to);
        if (to->made->is_begin) {
            recording_add_sources(to);
        }
    } else {
        schedule_free(to->made);
        to->made = NULL;
    }
    schedule *made = to->made;
    recording_now = before;
    release(to);
    free(to);
    return made;
}

schedule *schedule_record(const schedule_case *wanted, char *problem, size_t problem_bytes) {
    const collwise_algorithm *algorithm = collwise_find(wanted->collective, wanted->algorithm);
    return schedule_record_algorithm(wanted, algorithm, problem, problem_bytes);
}

schedule *schedule_record_algorithm(const schedule_case *wanted, const collwise_algorithm *algorithm, char *problem,
                                    size_t problem_bytes) {
    return record(wanted, algorithm, 0, 0, problem, problem_bytes);
}

schedule *schedule_record_root(const schedule_case *wanted, char *problem, size_t problem_bytes) {
    const collwise_algorithm *algorithm = collwise_find(wanted->collective, wanted->algorithm);
    return record(wanted, algorithm, 2, 0, problem, problem_bytes);
}

schedule *schedule_record_begin(const schedule_case *wanted, uint64_t max_words, char *problem, size_t problem_bytes) {
    const collwise_algorithm *algorithm = collwise_find(wanted->collective, wanted->algorithm);
    return record(wanted, algorithm, 0, max_words, problem, problem_bytes);
}

void schedule_free(schedule *made) {
    if (made == NULL) {
        return;
    }
    while (made->blocks != NULL) {
        struct schedule_block *next = made->blocks->next;
        free(made->blocks);
        made->blocks = next;
    }
    free(made->programs);
    free(made->program_of);
    free(made->sizes);
    free(made);
}

static int same_memory(const void *one, const void *other, size_t bytes) {
    return bytes == 0 || memcmp(one, other, bytes) == 0;
}

static int same_words(const schedule_program *one, const schedule_program *other) {
    return one->length == other->length && same_memory(one->words, other->words, one->length * sizeof *one->words);
}

int schedule_equal(const schedule *one, const schedule *other) {
    if (one->procs != other->procs || one->program_count != other->program_count ||
        one->size_count != other->size_count || one->messages != other->messages ||
        one->is_mirrored != other->is_mirrored ||
        !same_memory(one->program_of, other->program_of, (size_t)one->procs * sizeof *one->program_of) ||
        !same_memory(one->sizes, other->sizes, one->size_count * sizeof *one->sizes)) {
        return 0;
    }
    size_t same = 0;
    while (same < one->program_count && same_words(&one->programs[same], &other->programs[same])) {
        same++;
    }
    return same == one->program_count;
}

uint64_t schedule_memory(const schedule *made) {
    uint64_t bytes = sizeof *made + (uint64_t)made->procs * sizeof *made->program_of +
                     made->program_count * sizeof *made->programs + made->size_count * sizeof *made->sizes;
    for (const struct schedule_block *block = made->blocks; block != NULL; block = block->next) {
        bytes += sizeof *block + block->used;
    }
    return bytes;
}
