/* Sequences of random calls in a row, with nothing between them that would keep the processes in step.
 *
 * The seed says everything, and all processes draw the same: for each call the communicator, collective, algorithm,
 * root, data, operation and parameters. What each draws for itself is when it comes late, and where it starts a
 * non-blocking collective that may be started anywhere. Calls have numbers in the order in which all processes make
 * them. By turns a few algorithms are called many times in a row, on one communicator mostly, and others between.
 *
 * There is always the same number of communicators. Each process is in one of every kind, and those that a split made
 * make their calls at the same time. They are replaced by others again and again, also while in use.
 *
 * Non-blocking calls and the program's own messages are under way while further calls of the sequence are made. A
 * process may start the former before or behind these, if they are on other communicators: no such call blocks. */
#define _GNU_SOURCE
#include "timing.h"
#include "verify.h"
#include "workload.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAMILIES = 5, WORLD = 0 };

/* How the choices are weighed: one call in so many is no part of the burst of calls that it is in, and so on. */
enum { BURST_CALLS = 32, OTHER_CHOICE = 12, OTHER_COMMUNICATOR = 12, DRAWN_FOR_MEMORY = 8 };
enum { NON_BLOCKING = 10, MESSAGE = 32, RENEWAL = 24, ABSOLUTE = 8, TRAILING_GAP = 3 };
enum { MAX_INSIDE = 3, MAX_DEPTH = 2 };
enum { MAX_BITS_OF_INTS = 16 };
enum { LATE = 24, MAX_LATE_MICROSECONDS = 800, LAGGARD_LATE = 3, MAX_LAGGARD_MICROSECONDS = 200 };

typedef struct {
    const collwise_algorithm *algorithm;
    int within;
} choice;

typedef void place_function(MPI_Comm comm, int node, int socket);

struct verify_sequence {
    const verify_sequence_options *options;
    unsigned next; /* the number of the next call */
    int depth;     /* calls under way */
    int world_rank, world_procs;
    verify_entry *board, *own;
    choice *choices;
    unsigned choice_count;
    place_function *place;
    verify_family families[FAMILIES];
    /* A bit for each: it must not be freed; no collective may be called on it; the program receives on it. */
    unsigned held, closed, listening;
};

/* A call with its place in the sequence. The call comes first: pointers to it are pointers to this. */
typedef struct {
    verify_call call;
    verify_family *on;
    int which;         /* of the families */
    bool is_scattered; /* whether processes may start it behind the calls that are made meanwhile */
    unsigned inside;   /* the number of these */
    char text[VERIFY_TEXT];
} step;

typedef struct verify_sequence sequence;

/* --- Communicators ------------------------------------------------------------------------------------------------ */

/* As libcollwise counts them. */
static int max_per_node(MPI_Comm comm) {
    MPI_Comm node;
    int on_this_node, most;
    PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_size(node, &on_this_node);
    PMPI_Comm_free(&node);
    PMPI_Allreduce(&on_this_node, &most, 1, MPI_INT, MPI_MAX, comm);
    return most;
}

/* Makes the communicators of a kind from those of another, or of the same, and frees the ones before. */
static void renew(sequence *s, int which, int parent, unsigned number, verify_draws *draws) {
    verify_family *old = &s->families[which], made;
    verify_board_note(s->own, "the making of a communicator");
    verify_placement placed = verify_family_derive(&made, &s->families[parent], s->options->seed + number, draws);
    if (s->options->is_interposed) {
        made.per_node = max_per_node(made.comm);
    }
    if (placed != VERIFY_AS_STARTED) {
        s->place(made.comm, verify_node_of(placed, made.rank, made.procs),
                 verify_socket_of(placed, made.rank, made.procs));
    }
    if (old->world != NULL) {
        verify_family_free(old);
    }
    *old = made;
}

/* The kind drawn, or the next one that allows collectives. */
static int open_communicator(const sequence *s, unsigned drawn) {
    while ((s->closed >> drawn & 1) != 0) {
        drawn = (drawn + 1) % FAMILIES;
    }
    return (int)drawn;
}

/* --- Failures ----------------------------------------------------------------------------------------------------- */

static _Noreturn void fail(const sequence *s, const char *complaint) {
    snprintf(s->own->complaint, sizeof s->own->complaint, "%s", complaint);
    s->own->state = VERIFY_FAILED;
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static bool all_have_entered(const verify_call *call, char complaint[VERIFY_TEXT]) {
    const verify_family *on = ((const step *)call)->on;
    for (int rank = 0; rank < on->procs; rank++) {
        if (call->sequence->board[on->world[rank]].entered < (int64_t)call->serial) {
            snprintf(complaint, VERIFY_TEXT, "a process left the barrier before rank %d had entered", rank);
            return false;
        }
    }
    return true;
}

/* --- Making a call ------------------------------------------------------------------------------------------------ */

static void run_next(sequence *s);

static void come_late(const sequence *s, unsigned number) {
    verify_draws burst = verify_draws_of(s->options->seed, VERIFY_OF_LAGGARDS, number / BURST_CALLS);
    uint64_t who = (uint64_t)number * (uint64_t)s->world_procs + (uint64_t)s->world_rank;
    verify_draws own = verify_draws_of(s->options->seed, VERIFY_OF_DELAYS, who);
    bool is_laggard = verify_draw(&burst, (unsigned)s->world_procs) == (unsigned)s->world_rank;
    if (is_laggard && verify_draw(&own, LAGGARD_LATE) == 0) {
        usleep(1 + verify_draw(&own, MAX_LAGGARD_MICROSECONDS));
    } else if (verify_draw(&own, LATE) == 0) {
        usleep(1 + verify_draw(&own, MAX_LATE_MICROSECONDS));
    }
}

/* The call with buffers at MPI_BOTTOM, where there is one, or two of types of their own. */
static collwise_call at_addresses(const verify_call *call, const collwise_call *made, MPI_Datatype types[2]) {
    collwise_call moved = *made;
    if (made->send != MPI_IN_PLACE && made->send_type != MPI_DATATYPE_NULL) {
        moved.send_type = types[0] = verify_type_at(made->send, made->send_type);
        moved.send = MPI_BOTTOM;
    }
    if (verify_is_reduction(call->algorithm->kind) && made->send != MPI_IN_PLACE) {
        moved.receive_type = types[1] = verify_type_at(made->send, made->receive_type);
        moved.send = MPI_BOTTOM;
    } else if (made->receive != MPI_IN_PLACE && made->receive_type != MPI_DATATYPE_NULL) {
        moved.receive_type = types[1] = verify_type_at(made->receive, made->receive_type);
        moved.receive = MPI_BOTTOM;
    }
    return moved;
}

static void enter(const step *made) {
    verify_entry *own = made->call.sequence->own;
    own->entered = own->entered > (int64_t)made->call.serial ? own->entered : (int64_t)made->call.serial;
    verify_board_note(own, made->text);
}

/* Whether this process starts a non-blocking call behind those that are made meanwhile. */
static bool starts_late(const step *made) {
    const sequence *s = made->call.sequence;
    verify_draws own =
        verify_draws_of(s->options->seed, VERIFY_OF_STARTS,
                        (uint64_t)made->call.serial * (uint64_t)s->world_procs + (uint64_t)s->world_rank);
    return made->is_scattered && verify_draw(&own, 2) == 0;
}

/* Makes calls on the way. `closed` has a bit for communicators on which there must not be any. */
static void run_inside(sequence *s, unsigned calls, int which, bool closes) {
    unsigned held = s->held, closed = s->closed;
    s->held |= 1U << which;
    s->closed |= (unsigned)closes << which;
    s->depth++;
    for (unsigned i = 0; i < calls && s->next < s->options->calls; i++) {
        run_next(s);
    }
    s->depth--;
    s->held = held;
    s->closed = closed;
}

static void call_non_blocking(const step *made, const collwise_call *arguments) {
    MPI_Request request;
    bool is_late = starts_late(made);
    if (!is_late) {
        enter(made);
        program_workload_call_mpi(made->call.algorithm->kind, arguments, &request);
    }
    run_inside(made->call.sequence, made->inside, made->which, made->is_scattered);
    enter(made);
    if (is_late) {
        program_workload_call_mpi(made->call.algorithm->kind, arguments, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void make_call(const verify_call *call, const collwise_call *made) {
    const sequence *s = call->sequence;
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    collwise_call arguments = call->is_absolute ? at_addresses(call, made, types) : *made;
    come_late(s, call->serial);
    if (call->is_non_blocking) {
        call_non_blocking((const step *)call, &arguments);
    } else {
        enter((const step *)call);
        if (s->options->is_interposed) {
            program_workload_call_mpi(call->algorithm->kind, &arguments, NULL);
        } else {
            collwise_run(call->algorithm, &arguments, call->with);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (types[i] != MPI_DATATYPE_NULL) {
            MPI_Type_free(&types[i]);
        }
    }
}

static const verify_conductor conductor = {make_call, all_have_entered};

/* --- Drawing a call ----------------------------------------------------------------------------------------------- */

/* Memory of a node that processes share outlives a call, so that calls in a row may disturb one another. */
static bool has_memory(choice taken) {
    return taken.within == COLLWISE_WITHIN_SHARED || taken.within == COLLWISE_WITHIN_ONE_SIDED;
}

/* The first of some that are drawn that has memory, if one has. */
static choice drawn_for_burst(const sequence *s, verify_draws *draws) {
    choice taken = s->choices[verify_draw(draws, s->choice_count)];
    for (int i = 1; i < DRAWN_FOR_MEMORY && !has_memory(taken); i++) {
        taken = s->choices[verify_draw(draws, s->choice_count)];
    }
    return taken;
}

/* Half of the bursts are of one choice, the others of two by turns. */
static choice drawn_choice(const sequence *s, unsigned number, verify_draws *draws) {
    verify_draws burst = verify_draws_of(s->options->seed, VERIFY_OF_BURSTS, number / BURST_CALLS);
    choice other = s->choices[verify_draw(draws, s->choice_count)];
    bool is_second = verify_draw(draws, 2) == 0, has_second = verify_draw(&burst, 2) == 0;
    choice first = drawn_for_burst(s, &burst), second = drawn_for_burst(s, &burst);
    return verify_draw(draws, OTHER_CHOICE) == 0 ? other : is_second && has_second ? second : first;
}

static int drawn_communicator(const sequence *s, unsigned number, verify_draws *draws) {
    verify_draws burst = verify_draws_of(s->options->seed, VERIFY_OF_COMMUNICATORS, number / BURST_CALLS);
    unsigned other = verify_draw(draws, FAMILIES), usual = verify_draw(&burst, FAMILIES);
    return open_communicator(s, verify_draw(draws, OTHER_COMMUNICATOR) == 0 ? other : usual);
}

/* What MPI libraries do right. Their own algorithms are asked for no more than data without gaps, operations that
 * commute, and nothing in place: MPICH 4.0's reduce to another root than 0 crashes, and Open MPI 4.1's ialltoallv is
 * wrong. MPICH's allgatherv of one process ignores the displacement. */
static void make_plain(verify_call *call, int procs) {
    call->kinds[0] = call->kinds[1] = call->operand = VERIFY_INT;
    call->operation = VERIFY_SUM;
    call->in_place = call->is_absolute = false;
    call->is_mpis_own = true;
    call->ints = procs == 1 && call->algorithm->kind == COLLWISE_ALLGATHERV ? 0 : call->ints;
}

/* Whether, through libcollwise, an algorithm of ours runs: the one that its rules name, unless it has an objection. */
static bool is_ours(const sequence *s, verify_call *call, const verify_family *on) {
    collwise_collective kind = call->algorithm->kind;
    verify_rule rule = verify_rule_for(s->options, kind, on->procs, on->per_node, verify_call_bytes(call));
    if (rule.algorithm != NULL) {
        call->algorithm = rule.algorithm;
        call->with = rule.with;
    }
    return rule.algorithm != NULL && verify_call_applies(call, on->comm);
}

static void follow_rules(const sequence *s, verify_call *call, const verify_family *on) {
    if (!is_ours(s, call, on)) {
        make_plain(call, on->procs);
        call->is_mpis_own = !is_ours(s, call, on);
    }
}

/* Operations of our own only, on elements of the size that they know; every process of a reduction must have a type of
 * this kind, which takes a single buffer. */
static bool may_be_absolute(const verify_call *call) {
    return !verify_is_reduction(call->algorithm->kind) ||
           (call->in_place && call->operation >= VERIFY_CIRCLE && verify_elements(call->operand, VERIFY_SIX) == 1);
}

static verify_call drawn_call(const sequence *s, unsigned number, choice taken, const verify_family *on,
                              verify_draws *draws) {
    unsigned at[VERIFY_LISTS];
    for (int list = 0; list < VERIFY_LISTS; list++) {
        at[list] = verify_draw(draws, 1 << 16);
    }
    int ints = (int)verify_draw(draws, 1U << verify_draw(draws, MAX_BITS_OF_INTS + 1));
    verify_call call = verify_call_of(taken.algorithm, number, at, ints, on->procs);
    unsigned with_gap = verify_draw(draws, TRAILING_GAP), operand = verify_draw(draws, 2),
             commutes = verify_draw(draws, 2);
    if (with_gap == 0) { /* where libraries go wrong most */
        call.operand = operand == 0 ? VERIFY_PADDED : VERIFY_ROOMY;
        call.operation = commutes ? VERIFY_CIRCLE : VERIFY_COMPOSE;
    }
    if (call.operation == VERIFY_ROUNDED_SUM) { /* comparing its results would keep the processes in step */
        call.operation = VERIFY_MAX;
    }
    call.root = (int)verify_draw(draws, (unsigned)on->procs);
    if (verify_has_within(taken.algorithm)) {
        call.with.within = taken.within;
    }
    call.is_absolute = verify_draw(draws, ABSOLUTE) == 0 && may_be_absolute(&call);
    call.sequence = (sequence *)s;
    call.conductor = &conductor;
    return call;
}

static void describe(step *made) {
    const verify_call *call = &made->call;
    const char *own = call->is_mpis_own ? "by MPI itself, not " : "";
    snprintf(made->text, VERIFY_TEXT, "call %u, %s%s %s%s", call->serial, call->is_non_blocking ? "i" : "",
             call->algorithm->collective, own, call->algorithm->name);
    if (!call->is_mpis_own) {
        verify_describe_parameters(call->algorithm, call->with, made->text);
    }
    verify_describe_data(call, made->text);
    size_t length = strlen(made->text);
    snprintf(made->text + length, VERIFY_TEXT - length, ", P = %d (%s)", made->on->procs, made->on->name);
}

/* On the communicator that was made just before, if one was, in half of the cases a non-blocking collective, before
 * which no other one has been called there. */
static void call_collective(sequence *s, unsigned number, int just_made, verify_draws *draws) {
    char complaint[VERIFY_TEXT];
    choice taken = drawn_choice(s, number, draws);
    bool is_first = just_made != WORLD && verify_draw(draws, 2) == 0;
    step made = {.which = is_first ? just_made : drawn_communicator(s, number, draws)};
    made.on = &s->families[made.which];
    made.call = drawn_call(s, number, taken, made.on, draws);
    made.call.is_non_blocking = (is_first || verify_draw(draws, NON_BLOCKING) == 0) && s->depth < MAX_DEPTH;
    made.is_scattered = verify_draw(draws, 2) == 0;
    made.inside = 1 + verify_draw(draws, MAX_INSIDE);
    if (made.call.is_non_blocking) {
        make_plain(&made.call, made.on->procs);
    } else if (s->options->is_interposed) {
        follow_rules(s, &made.call, made.on);
    }
    describe(&made);
    verify_outcome outcome = verify_call_run(&made.call, made.on->comm, complaint);
    if (outcome == VERIFY_WRONG) {
        verify_board_note(s->own, made.text);
        fail(s, complaint);
    }
    if (made.on->rank == 0) {
        s->own->calls += outcome == VERIFY_RIGHT;
        s->own->skipped += outcome == VERIFY_NOT_APPLICABLE;
        s->own->by_ours += outcome == VERIFY_RIGHT && !made.call.is_mpis_own;
    }
}

/* A message of the program to its neighbour, received by whatever comes, while calls are made. */
static void exchange(sequence *s, unsigned number, verify_draws *draws) {
    int which = open_communicator(s, verify_draw(draws, FAMILIES));
    unsigned inside = 1 + verify_draw(draws, MAX_INSIDE), listening = s->listening;
    const verify_family *on = &s->families[which];
    int sent = (int)number * on->procs + on->rank, got = -1, before = (on->rank + on->procs - 1) % on->procs;
    MPI_Request receive;
    bool is_alone = on->procs == 1; /* MPICH 4.0 matches such a receive with messages of its own collectives */
    if ((listening >> which & 1) != 0 || s->depth >= MAX_DEPTH) {
        return;
    }
    if (!is_alone) {
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, on->comm, &receive);
    }
    s->listening |= 1U << which;
    run_inside(s, inside, which, false);
    s->listening = listening;
    if (is_alone) {
        return;
    }
    verify_board_note(s->own, "the program's own message");
    MPI_Send(&sent, 1, MPI_INT, (on->rank + 1) % on->procs, (int)number % 1000, on->comm);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    if (got != (int)number * on->procs + before) {
        fail(s, "the program received another message than its own");
    }
}

static void run_next(sequence *s) {
    unsigned number = s->next++;
    verify_draws draws = verify_draws_of(s->options->seed, VERIFY_OF_CALLS, number);
    int which = 1 + (int)verify_draw(&draws, FAMILIES - 1);
    int parent = open_communicator(s, verify_draw(&draws, 2) * verify_draw(&draws, FAMILIES));
    bool is_renewed = verify_draw(&draws, RENEWAL) == 0 && ((s->held | s->closed) >> which & 1) == 0;
    if (is_renewed) {
        renew(s, which, parent, number, &draws);
    }
    if (verify_draw(&draws, MESSAGE) == 0) {
        exchange(s, number, &draws);
    }
    call_collective(s, number, is_renewed ? which : WORLD, &draws);
}

/* --- The whole sequence ------------------------------------------------------------------------------------------- */

static void list_choices(sequence *s) {
    const verify_sequence_options *options = s->options;
    for (int fill = 0; fill < 2; fill++) {
        s->choice_count = 0;
        for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
            int forms = verify_has_within(each) && !COLLWISE_IS_SIMULATED ? COLLWISE_WITHIN_FORMS : 1;
            bool is_wanted = (options->collective == NULL || strcmp(options->collective, each->collective) == 0) &&
                             (options->algorithm == NULL || strcmp(options->algorithm, each->name) == 0);
            for (int within = 0; is_wanted && within < forms; within++) {
                if (fill) {
                    s->choices[s->choice_count] = (choice){each, within};
                }
                s->choice_count++;
            }
        }
        if (!fill) {
            s->choices = collwise_allocate((s->choice_count + 1) * sizeof *s->choices, MPI_COMM_WORLD);
        }
    }
    if (s->choice_count == 0) {
        fail(s, "no such algorithm in the catalogue");
    }
}

/* The functions that this program calls must be libcollwise's. */
static void check_functions(const sequence *s) {
    typedef void function(void);
    static function *const called[] = {(function *)MPI_Bcast,          (function *)MPI_Gather,
                                       (function *)MPI_Gatherv,        (function *)MPI_Scatter,
                                       (function *)MPI_Scatterv,       (function *)MPI_Allgather,
                                       (function *)MPI_Allgatherv,     (function *)MPI_Alltoall,
                                       (function *)MPI_Alltoallv,      (function *)MPI_Barrier,
                                       (function *)MPI_Reduce,         (function *)MPI_Allreduce,
                                       (function *)MPI_Reduce_scatter, (function *)MPI_Reduce_scatter_block,
                                       (function *)MPI_Scan,           (function *)MPI_Exscan};
    for (size_t i = 0; i < sizeof called / sizeof *called; i++) {
        Dl_info info;
        void *address;
        memcpy(&address, &called[i], sizeof address);
        bool is_known = dladdr(address, &info) != 0;
        if (!is_known || strstr(info.dli_fname, "libcollwise") == NULL) {
            char complaint[VERIFY_TEXT];
            snprintf(complaint, sizeof complaint, "the program calls the %s of %s, not of libcollwise",
                     collwise_collective_names[i], is_known ? info.dli_fname : "an unknown library");
            fail(s, complaint);
        }
    }
}

/* That of the library whose algorithms run. */
static place_function *find_place_function(const sequence *s) {
    place_function *found = collwise_place;
    if (s->options->is_interposed) {
        void *symbol = dlsym(RTLD_DEFAULT, "collwise_place");
        if (symbol == NULL) {
            fail(s, "libcollwise has no collwise_place");
        }
        memcpy(&found, &symbol, sizeof found);
    }
    return found;
}

void verify_sequence_set_up(const verify_sequence_options *options) {
    verify_draws draws = verify_draws_of(options->seed, VERIFY_OF_SETTINGS, 0);
    const size_t message_buffers[] = {COLLWISE_MESSAGE_BUFFER_BYTES, 100000, 3000};
    const size_t integer_buffers[] = {COLLWISE_INTEGER_BUFFER_BYTES, COLLWISE_INTEGER_BUFFER_BYTES, 40};
    collwise_memory memory = {message_buffers[verify_draw(&draws, 3)], integer_buffers[verify_draw(&draws, 3)]};
    char text[4096];
    collwise_limit_memory(memory);
    if (!options->is_interposed) {
        return;
    }
    snprintf(text, sizeof text, "%s/rules.%ld", options->directory, (long)getpid());
    verify_write_rules(options, text);
    setenv("COLLWISE_TABLE", text, 1);
    snprintf(text, sizeof text, "%zu", memory.message_bytes);
    setenv("COLLWISE_MESSAGE_BUFFER", text, 1);
    snprintf(text, sizeof text, "%zu", memory.integer_bytes);
    setenv("COLLWISE_INTEGER_BUFFER", text, 1);
    if (verify_draw(&draws, 2) == 0) {
        snprintf(text, sizeof text, "%s/report.json", options->directory);
        setenv("COLLWISE_REPORT", text, 1);
    }
}

void verify_sequence_run(const verify_sequence_options *options) {
    sequence s = {.options = options, .board = verify_board_open(options->directory)};
    MPI_Comm_rank(MPI_COMM_WORLD, &s.world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.world_procs);
    s.own = &s.board[s.world_rank];
    verify_board_note(s.own, "the start");
    if (options->is_interposed) {
        check_functions(&s);
    }
    s.place = find_place_function(&s);
    list_choices(&s);
    s.families[WORLD] = verify_family_of(MPI_COMM_WORLD, "the world");
    s.families[WORLD].per_node = options->is_interposed ? max_per_node(MPI_COMM_WORLD) : 0;
    for (int which = 1; which < FAMILIES; which++) {
        verify_draws draws = verify_draws_of(options->seed, VERIFY_OF_SETTINGS, (uint64_t)which);
        renew(&s, which, WORLD, (unsigned)which, &draws);
    }
    while (s.next < options->calls) {
        run_next(&s);
    }
    for (int which = 0; which < FAMILIES; which++) {
        verify_board_note(s.own, "the end");
        if (!options->is_interposed && verify_has_leftovers(s.families[which].comm)) {
            fail(&s, "a message was left unreceived");
        }
        verify_family_free(&s.families[which]);
    }
    free(s.choices);
    verify_board_note(s.own, "MPI_Finalize");
    s.own->state = VERIFY_FINISHED;
}
