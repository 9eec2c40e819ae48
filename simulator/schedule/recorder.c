/* The recording MPI of recording/mpi.h, and what the algorithms need besides it: memory, copies, reductions and the
 * private communicator. Each process's function is called in turn; its MPI calls become the words of its program.
 *
 * A process that splits a communicator has to know what the other members ask for. From the first split on the others
 * therefore run on stacks of their own, one at a time: each goes on until it waits for others, and the process that
 * split first resumes them by turns. Processes of algorithms that split nothing need no stacks. */
#include "recorder.h"
#include "../programs/task_window.h"
#include "arrivals.h"
#include "communicators.h"
#include "library_calls.h"
#include "mock_ups.h"
#include "tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Users' data lies at addresses that nobody ever reads or writes. */
#define PAYLOAD_START ((uintptr_t)1 << 46)
#define PAYLOAD_BYTES ((uintptr_t)1 << 44)

static int is_payload(const void *address) {
    return (uintptr_t)address >= PAYLOAD_START && (uintptr_t)address < PAYLOAD_START + PAYLOAD_BYTES;
}

/* Two buffers, the second one behind anything that an algorithm finds in the first. */
static char *payload(int which) { return (char *)(PAYLOAD_START + (uintptr_t)which * (PAYLOAD_BYTES / 4)); }

/* Data of the program's own that one process sends another. */
typedef struct own_data {
    struct own_data *next;
    int source, destination;
    size_t bytes;
    char data[];
} own_data;

/* A process that is being recorded. */
typedef struct process {
    struct process *next_made, *next_spare;
    int rank;
    schedule_word *words;
    size_t length, room;
    uint64_t copied;  /* bytes of copies since the last word */
    int64_t requests; /* made so far */
    uint32_t most_requests;
    collwise_hierarchy *hierarchy; /* NULL unless its algorithm asks for it */
    int *integers;                 /* the buffer of a mock-up, else NULL */
} process;

typedef enum { NOT_YET, UNDER_WAY, RECORDED } progress;

/* What the MPI library runs for the latest call of a collective. */
typedef struct {
    const collwise_algorithm *algorithm; /* NULL: there was no call */
    uint64_t message_bytes;
    collwise_parameters with;
} library_choice;

/* A process that runs on a stack of its own. */
typedef struct {
    ucontext_t context;
    int rank;
    int awaits_messages; /* it can go on when one arrives, not when others do anything else */
} fiber;

/* The stacks are mapped together, and take memory only where they are used. Nothing on the algorithms' stacks is large:
 * the recording build refuses frames of more than 16 KiB. */
enum { STACK_BYTES = 256 << 10 };

typedef struct {
    const schedule_case *wanted;
    int has_tasks;
    task_window window;
    collwise_observer tasks; /* what is run of a collective made of tasks */
    const collwise_algorithm *algorithm;
    size_t *offsets; /* of the blocks, for the collectives with a size for each process */
    collwise_operation op;
    library_choice library[COLLWISE_COLLECTIVES];
    schedule *made;
    process *now;
    unsigned char *progress_of; /* a `progress` for each process */
    uint32_t *program_table;    /* programs by hash, 1 more than their number; a power of two places */
    size_t program_places, program_room;
    uint32_t *size_table; /* sizes by hash, 1 more than their number */
    size_t size_places, size_room;
    uint32_t latest_size;        /* 1 more than the number found last */
    uint32_t *seen_by, *sources; /* each relative process: 1 more than the last program that receives from it; a list */
    own_data *in_transit;
    collwise_nodes *nodes;        /* of all processes, NULL before the first one asks */
    communicators *communicators; /* NULL before the first split */
    fiber *fibers;                /* NULL before the first split */
    size_t fiber_count;
    char *stacks;
    fiber *running;             /* NULL: the process that was recorded when the first split came */
    ucontext_t resumes;         /* it, while a fiber runs */
    uint64_t changes;           /* which could end the wait of a process */
    arrivals *arrivals;         /* of messages, NULL before a sequence of tasks begins */
    fiber **fiber_of;           /* of each process, while there are arrivals; NULL for that without one */
    size_t idle;                /* fibers that await messages or are done */
    int has_failed;             /* in a fiber */
    process *processes, *spare; /* all that were made, and those whose words can be used again */
    jmp_buf give_up;
    char *problem;
    size_t problem_bytes;
} recording;

static _Thread_local recording *current;

/* --- Failure and memory ------------------------------------------------------------------------------------------ */

static _Noreturn void fail(recording *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->problem, to->problem_bytes, format, arguments);
    va_end(arguments);
    if (to->running != NULL) {
        to->has_failed = 1;
        setcontext(&to->resumes);
    }
    longjmp(to->give_up, 1);
}

static void *checked(void *memory) {
    if (memory == NULL) {
        fail(current, "out of memory");
    }
    return memory;
}

/* Makes room for one more item; rooms double. */
static void *grown(void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) {
        return items;
    }
    *room = *room == 0 ? 16 : 2 * *room;
    return checked(realloc(items, *room * item_bytes));
}

/* Programs are kept in blocks of doubling size. */
struct schedule_block {
    struct schedule_block *next;
    size_t bytes, used;
    max_align_t memory[];
};

enum { LEAST_BLOCK_BYTES = 4096, MOST_BLOCK_BYTES = 1 << 20 };

/* Zeros that live as long as the schedule. */
static void *kept(schedule *made, size_t bytes) {
    struct schedule_block *block = made->blocks;
    bytes = (bytes + sizeof(schedule_word) - 1) / sizeof(schedule_word) * sizeof(schedule_word);
    if (block == NULL || block->bytes - block->used < bytes) {
        size_t room = block == NULL ? LEAST_BLOCK_BYTES : 2 * block->bytes;
        room = room > MOST_BLOCK_BYTES ? MOST_BLOCK_BYTES : room;
        room = room < bytes ? bytes : room;
        block = checked(calloc(1, sizeof *block + room));
        *block = (struct schedule_block){.next = made->blocks, .bytes = room};
        made->blocks = block;
    }
    block->used += bytes;
    return (char *)block->memory + block->used - bytes;
}

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9e3779b97f4a7c15U;
    return value ^ value >> 29;
}

/* --- Sizes and programs, each kept once --------------------------------------------------------------------------- */

/* The place of a key in a table of numbers: where it is, or the free place where it belongs. */
static size_t size_place(const recording *to, uint64_t bytes) {
    size_t place = mixed(bytes) & (to->size_places - 1);
    while (to->size_table[place] != 0 && to->made->sizes[to->size_table[place] - 1] != bytes) {
        place = (place + 1) & (to->size_places - 1);
    }
    return place;
}

static uint32_t size_number(recording *to, uint64_t bytes) {
    schedule *made = to->made;
    if (to->latest_size != 0 && made->sizes[to->latest_size - 1] == bytes) {
        return to->latest_size - 1;
    }
    size_t place = size_place(to, bytes);
    if (to->size_table[place] != 0) {
        to->latest_size = to->size_table[place];
        return to->latest_size - 1;
    }
    made->sizes = grown(made->sizes, made->size_count, &to->size_room, sizeof *made->sizes);
    made->sizes[made->size_count++] = bytes;
    to->size_table[place] = (uint32_t)made->size_count;
    if (2 * made->size_count > to->size_places) {
        to->size_places *= 2;
        free(to->size_table);
        to->size_table = NULL;
        to->size_table = checked(calloc(to->size_places, sizeof *to->size_table));
        for (size_t i = 0; i < made->size_count; i++) {
            to->size_table[size_place(to, made->sizes[i])] = (uint32_t)i + 1;
        }
    }
    return (uint32_t)made->size_count - 1;
}

static uint64_t hash_of(const schedule_word *words, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++) {
        hash = mixed(hash ^ words[i]);
    }
    return hash;
}

static size_t program_place(const recording *to, const schedule_word *words, size_t length) {
    size_t place = hash_of(words, length) & (to->program_places - 1);
    for (; to->program_table[place] != 0; place = (place + 1) & (to->program_places - 1)) {
        const schedule_program *known = &to->made->programs[to->program_table[place] - 1];
        if (known->length == length && (length == 0 || memcmp(known->words, words, length * sizeof *words) == 0)) {
            break;
        }
    }
    return place;
}

/* Makes the table of a program's sources. */
static void find_sources(recording *to, schedule_program *program, uint32_t mark) {
    for (size_t i = 0; i < program->length; i++) {
        schedule_kind kind = schedule_kind_of(program->words[i]);
        uint32_t peer = schedule_peer_of(program->words[i]);
        if ((kind == SCHEDULE_RECEIVE || kind == SCHEDULE_START_RECEIVE) && to->seen_by[peer] != mark) {
            to->seen_by[peer] = mark;
            to->sources[program->source_count++] = peer;
        }
    }
    program->source_bits = 1;
    while (1U << program->source_bits < 2 * program->source_count) {
        program->source_bits++;
    }
    program->sources = kept(to->made, sizeof *program->sources << program->source_bits);
    for (uint32_t i = 0; i < program->source_count; i++) {
        *schedule_find_source(program, to->sources[i]) = (schedule_source){to->sources[i] + 1, i};
    }
}

/* Keeps the program of a process that is done. */
static void keep(recording *to, const process *done) {
    schedule *made = to->made;
    size_t place = program_place(to, done->words, done->length);
    if (to->program_table[place] == 0) {
        made->programs = grown(made->programs, made->program_count, &to->program_room, sizeof *made->programs);
        schedule_program *added = &made->programs[made->program_count];
        *added = (schedule_program){.length = done->length, .requests = done->most_requests};
        added->words = kept(made, done->length * sizeof *added->words);
        if (done->length > 0) {
            memcpy(added->words, done->words, done->length * sizeof *added->words);
        }
        to->program_table[place] = (uint32_t)++made->program_count;
        find_sources(to, added, (uint32_t)made->program_count);
    }
    made->program_of[done->rank] = to->program_table[place] - 1;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static void append(schedule_kind kind, uint32_t peer, uint32_t size) {
    process *now = current->now;
    now->words = grown(now->words, now->length, &now->room, sizeof *now->words);
    now->words[now->length++] = schedule_make_word(kind, peer, size);
}

/* Copies in succession are one word. */
static void add_copies(void) {
    uint64_t copied = current->now->copied;
    if (copied > 0) {
        current->now->copied = 0;
        append(SCHEDULE_COPY, 0, size_number(current, copied));
    }
}

static void add(schedule_kind kind, uint32_t peer, uint32_t size) {
    add_copies();
    append(kind, peer, size);
}

static uint32_t relative(int peer) {
    int distance = peer - current->now->rank;
    return (uint32_t)(distance < 0 ? distance + current->made->procs : distance);
}

static void record_process(recording *to, int rank);

/* --- Processes that wait for others ------------------------------------------------------------------------------- */

static void run_fiber(void) {
    record_process(current, current->running->rank);
    current->idle++;
}

/* Gives a stack to each process that has not begun. */
static void make_fibers(recording *to) {
    size_t count = 0;
    for (int rank = 0; rank < to->made->procs; rank++) {
        count += to->progress_of[rank] == NOT_YET;
    }
    to->fibers = checked(calloc(count + 1, sizeof *to->fibers));
    void *stacks = mmap(NULL, (count + 1) * STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    to->stacks = checked(stacks == MAP_FAILED ? NULL : stacks);
    to->fiber_count = count;
    for (int rank = 0, i = 0; rank < to->made->procs; rank++) {
        if (to->progress_of[rank] == NOT_YET) {
            fiber *made = &to->fibers[i];
            made->rank = rank;
            getcontext(&made->context);
            made->context.uc_stack.ss_sp = to->stacks + (size_t)i * STACK_BYTES;
            made->context.uc_stack.ss_size = STACK_BYTES;
            made->context.uc_link = &to->resumes;
            makecontext(&made->context, run_fiber, 0);
            i++;
        }
    }
}

static void resume(recording *to, fiber *resumed) {
    process *now = to->now;
    to->running = resumed;
    swapcontext(&to->resumes, &resumed->context);
    to->running = NULL;
    if (to->has_failed) {
        longjmp(to->give_up, 1);
    }
    to->now = now;
}

/* Lets each fiber go on until it waits that is not done and does not await messages. Returns whether that changed
 * anything. */
static int resume_fibers(recording *to) {
    uint64_t changes = to->changes;
    for (size_t i = 0; to->idle < to->fiber_count && i < to->fiber_count; i++) {
        if (to->progress_of[to->fibers[i].rank] != RECORDED && !to->fibers[i].awaits_messages) {
            resume(to, &to->fibers[i]);
        }
    }
    return to->changes > changes;
}

/* Lets the process go on whose messages arrive next. Returns 0 if none are under way. */
static int resume_next(recording *to) {
    int rank = to->arrivals == NULL ? -1 : arrivals_next(to->arrivals);
    fiber *found = rank < 0 ? NULL : to->fiber_of[rank];
    if (found != NULL && found->awaits_messages) {
        resume(to, found);
    }
    return rank >= 0;
}

/* The process can go on only after something has changed. */
static void wait_for_others(recording *to) {
    if (to->running != NULL) {
        process *now = to->now;
        swapcontext(&to->running->context, &to->resumes);
        to->now = now;
    } else if (!resume_fibers(to) && !resume_next(to)) {
        fail(to, "process %d waits for ever for processes that do not split a communicator with it or send it nothing",
             to->now->rank);
    }
}

/* The same where only a message can be what has changed. */
static void wait_for_messages(recording *to) {
    fiber *running = to->running;
    if (running != NULL) {
        running->awaits_messages = 1;
        to->idle++;
    }
    wait_for_others(to);
    if (running != NULL) {
        running->awaits_messages = 0;
        to->idle--;
    }
}

static void finish_fibers(recording *to) {
    for (size_t i = 0; i < to->fiber_count; i++) {
        while (to->progress_of[to->fibers[i].rank] != RECORDED) {
            if (!resume_fibers(to) && !resume_next(to)) {
                fail(to,
                     "process %d waits for ever for processes that do not split a communicator with it or send it "
                     "nothing",
                     to->fibers[i].rank);
            }
        }
    }
}

/* From now on messages arrive at times of their own. */
static void begin_arrivals(recording *to) {
    if (to->arrivals != NULL || to->fibers == NULL) {
        return;
    }
    to->fiber_of = checked(calloc((size_t)to->made->procs, sizeof *to->fiber_of));
    for (size_t i = 0; i < to->fiber_count; i++) {
        to->fiber_of[to->fibers[i].rank] = &to->fibers[i];
    }
    to->arrivals = checked(arrivals_make(to->made->procs));
}

static void post(int is_send, int source, int destination, uint64_t bytes, int64_t request) {
    const int32_t *node_of = current->wanted->node_of;
    if (current->arrivals == NULL) {
        return;
    }
    arrivals_side side = {.source = source,
                          .destination = destination,
                          .is_send = is_send,
                          .is_local = node_of != NULL && node_of[source] == node_of[destination],
                          .bytes = bytes,
                          .request = request};
    if (!arrivals_post(current->arrivals, &side)) {
        fail(current, "out of memory");
    }
}

/* --- Data of the program's own ------------------------------------------------------------------------------------ */

static void deposit(const void *data, size_t bytes, int destination) {
    own_data *item = checked(malloc(sizeof *item + bytes));
    *item = (own_data){.source = current->now->rank, .destination = destination, .bytes = bytes};
    memcpy(item->data, data, bytes);
    own_data **end = &current->in_transit;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = item;
    current->changes++;
}

static own_data **find_own_data(int source) {
    own_data **item = &current->in_transit;
    while (*item != NULL && ((*item)->source != source || (*item)->destination != current->now->rank)) {
        item = &(*item)->next;
    }
    return item;
}

/* The sender is recorded first if it has not been. */
static void collect(void *data, size_t bytes, int source) {
    if (*find_own_data(source) == NULL && current->progress_of[source] == NOT_YET && current->fibers == NULL) {
        record_process(current, source);
    }
    while (*find_own_data(source) == NULL && current->fibers != NULL && current->progress_of[source] != RECORDED) {
        wait_for_others(current);
    }
    own_data **item = find_own_data(source), *found = *item;
    if (found == NULL || found->bytes != bytes) {
        fail(current, "process %d's control flow depends on data of process %d that it does not have yet",
             current->now->rank, source);
    }
    memcpy(data, found->data, bytes);
    *item = found->next;
    free(found);
}

/* A member's rank among all processes. */
static int process_of(MPI_Comm comm, int rank) {
    if (comm == MPI_COMM_WORLD) {
        return rank;
    }
    int size = communicators_size(current->communicators, comm);
    if (rank < 0 || rank >= size) {
        fail(current, "process %d names rank %d of a communicator of %d processes", current->now->rank, rank, size);
    }
    return communicators_member(current->communicators, comm, rank);
}

/* The process's own rank. */
static int rank_in(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return current->now->rank;
    }
    int is_one = communicators_size(current->communicators, comm) > 0;
    int rank = is_one ? communicators_rank(current->communicators, comm, current->now->rank) : -1;
    if (rank < 0) {
        fail(current, "process %d uses a communicator to which it does not belong", current->now->rank);
    }
    return rank;
}

static void record_send(schedule_kind kind, const void *data, int bytes, int destination) {
    current->made->messages++;
    current->made->bytes += (uint64_t)bytes;
    if (bytes > 0 && !is_payload(data)) {
        deposit(data, (size_t)bytes, destination);
    }
    add(kind, relative(destination), size_number(current, (uint64_t)bytes));
    post(1, current->now->rank, destination, (uint64_t)bytes, kind == SCHEDULE_SEND ? -1 : current->now->requests);
}

static void record_receive(schedule_kind kind, void *data, int bytes, int source) {
    add(kind, relative(source), size_number(current, (uint64_t)bytes));
    post(0, source, current->now->rank, (uint64_t)bytes, kind == SCHEDULE_RECEIVE ? -1 : current->now->requests);
    if (bytes > 0 && !is_payload(data)) {
        collect(data, (size_t)bytes, source);
    }
}

static void record_wait(int64_t first, uint32_t count) {
    process *now = current->now;
    uint32_t back = (uint32_t)(now->requests - first);
    now->most_requests = back > now->most_requests ? back : now->most_requests;
    add(SCHEDULE_WAIT, count, back);
}

/* --- The recording MPI -------------------------------------------------------------------------------------------- */

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    *rank = rank_in(comm);
    return 0;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    *size = collwise_size_of(comm);
    return 0;
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
    recording *to = current;
    if (to->communicators == NULL) {
        to->communicators = checked(communicators_make(to->made->procs));
        make_fibers(to);
    }
    int rank = rank_in(comm);
    if (colour < 0 && colour != MPI_UNDEFINED) {
        fail(to, "process %d splits a communicator by colour %d, which is negative", to->now->rank, colour);
    }
    if (!communicators_divide(to->communicators, comm, rank, colour, MPI_UNDEFINED, key)) {
        fail(to, "out of memory");
    }
    to->changes++;
    while ((*part = communicators_part(to->communicators, comm, rank)) == COMMUNICATORS_UNKNOWN) {
        wait_for_others(to);
    }
    return 0;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    (void)info;
    if (type != MPI_COMM_TYPE_SHARED && type != MPI_UNDEFINED) {
        fail(current, "process %d splits a communicator by type %d, which is not MPI_COMM_TYPE_SHARED",
             current->now->rank, type);
    }
    const int32_t *node_of = current->wanted->node_of;
    int node = node_of == NULL ? current->now->rank : node_of[current->now->rank];
    return MPI_Comm_split(comm, type == MPI_UNDEFINED ? MPI_UNDEFINED : node, key, part);
}

int MPI_Comm_free(MPI_Comm *comm) {
    rank_in(*comm);
    *comm = MPI_COMM_NULL;
    return 0;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm) {
    (void)type, (void)tag;
    record_send(SCHEDULE_SEND, data, count, process_of(comm, destination));
    return 0;
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    (void)type, (void)tag, (void)status;
    record_receive(SCHEDULE_RECEIVE, data, count, process_of(comm, source));
    return 0;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
    (void)type, (void)tag;
    record_send(SCHEDULE_START_SEND, data, count, process_of(comm, destination));
    *request = current->now->requests++;
    return 0;
}

int MPI_Issend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
               MPI_Request *request) {
    (void)type, (void)tag;
    record_send(SCHEDULE_START_SYNCHRONOUS, data, count, process_of(comm, destination));
    *request = current->now->requests++;
    return 0;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)type, (void)tag;
    record_receive(SCHEDULE_START_RECEIVE, data, count, process_of(comm, source));
    *request = current->now->requests++;
    return 0;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                 MPI_Status *status) {
    MPI_Request both[2];
    (void)status;
    MPI_Irecv(receive, receive_count, receive_type, source, receive_tag, comm, &both[0]);
    MPI_Isend(send, send_count, send_type, destination, send_tag, comm, &both[1]);
    record_wait(both[0], 2);
    return 0;
}

/* Requests with successive numbers take one word together. */
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
    (void)statuses;
    for (int first = 0, next; first < count; first = next) {
        next = first + 1;
        if (requests[first] == MPI_REQUEST_NULL) {
            continue;
        }
        while (next < count && requests[next] == requests[next - 1] + 1) {
            next++;
        }
        record_wait(requests[first], (uint32_t)(next - first));
    }
    return 0;
}

/* The request of the list that has completed first, -1 if none has. */
static int first_complete(const recording *to, int count, const MPI_Request *requests) {
    uint64_t earliest = UINT64_MAX, when;
    int first = -1;
    for (int i = 0; i < count; i++) {
        if (requests[i] != MPI_REQUEST_NULL && arrivals_is_complete(to->arrivals, to->now->rank, requests[i], &when) &&
            when < earliest) {
            earliest = when;
            first = i;
        }
    }
    return first;
}

int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status) {
    recording *to = current;
    int found = 0;
    (void)status;
    if (to->arrivals == NULL) {
        fail(to, "process %d waits for any of several messages outside a sequence of tasks", to->now->rank);
    }
    while ((found = first_complete(to, count, requests)) < 0) {
        wait_for_messages(to);
    }
    record_wait(requests[found], 1);
    requests[found] = MPI_REQUEST_NULL;
    *index = found;
    return 0;
}

int MPI_Testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status) {
    (void)count, (void)requests, (void)status;
    *index = MPI_UNDEFINED;
    *flag = 0;
    return 0;
}

/* --- What the algorithms need besides MPI (internal.h, tasks.h) --------------------------------------------------- */

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    (void)comm;
    return checked(malloc(bytes > 0 ? bytes : 1));
}

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    (void)bytes, (void)comm;
    return payload(3);
}

void collwise_scratch_free(char *scratch) { (void)scratch; }

static void record_copy(size_t bytes) { current->now->copied += bytes; }

void collwise_copy(char *to, const char *from, size_t bytes) {
    (void)to, (void)from;
    record_copy(bytes);
}

void collwise_clear(char *data, size_t bytes) {
    (void)data;
    record_copy(bytes);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

char *collwise_message_memory(size_t bytes, MPI_Comm comm) {
    collwise_memory *extra = &current->made->extra;
    (void)comm;
    extra->message_bytes = larger(extra->message_bytes, bytes);
    return payload(2);
}

int *collwise_integer_memory(size_t count, MPI_Comm comm) {
    collwise_memory *extra = &current->made->extra;
    (void)comm;
    extra->integer_bytes = larger(extra->integer_bytes, count * sizeof(int));
    current->now->integers = checked(realloc(current->now->integers, count * sizeof(int)));
    return current->now->integers;
}

void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements) {
    (void)left, (void)right;
    if (elements > 0) {
        add(SCHEDULE_REDUCE, 0, size_number(current, elements * op->element_bytes));
    }
}

void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements) {
    collwise_combine(op, right, left, elements);
}

void collwise_combine_received(const collwise_operation *op, char *data, char *received, size_t elements,
                               int sender_is_lower) {
    (void)sender_is_lower;
    collwise_combine(op, received, data, elements);
}

int collwise_has_library(void) { return 1; }

static _Noreturn void refuse_library(void) { fail(current, "MPI's own collectives between nodes cannot be recorded"); }

void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root) {
    (void)to, (void)data, (void)bytes, (void)root;
    refuse_library();
}

void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root) {
    (void)to, (void)sum, (void)elements, (void)op, (void)root;
    refuse_library();
}

void collwise_add_library_gather(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                 int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_scatter(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                  int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_allgather(collwise_rounds *to, char *all, const int *counts, const int *displacements) {
    (void)to, (void)all, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_alltoall(collwise_rounds *to, const char *send, char *receive, const int *counts,
                                   const int *displacements) {
    (void)to, (void)send, (void)receive, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_barrier(collwise_rounds *to) {
    (void)to;
    refuse_library();
}

static _Noreturn void refuse_window(void) {
    fail(current, "shared and one-sided memory of a node cannot be recorded: 'within' has to be 0");
}

int collwise_window_takes(size_t element_bytes) {
    (void)element_bytes;
    return 1;
}

collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    (void)levels, (void)form, (void)comm;
    refuse_window();
}

void collwise_window_free(collwise_window *window) { (void)window; }

void collwise_add_window_bcast(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                               char *data, size_t bytes) {
    (void)to, (void)state, (void)window, (void)root, (void)data, (void)bytes;
    refuse_window();
}

void collwise_add_window_reduce(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                                char *sum, size_t elements, const collwise_operation *op) {
    (void)to, (void)state, (void)window, (void)root, (void)sum, (void)elements, (void)op;
    refuse_window();
}

/* A sequence of tasks begins by asking for it. */
const collwise_observer *collwise_observer_of(MPI_Comm comm) {
    (void)comm;
    begin_arrivals(current);
    return current->has_tasks ? &current->tasks : NULL;
}

int collwise_rank_in(MPI_Comm comm) { return rank_in(comm); }

int collwise_size_of(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return current->made->procs;
    }
    rank_in(comm);
    return communicators_size(current->communicators, comm);
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), fanout);
}

static collwise_nodes *nodes_of_all(const recording *to) {
    int procs = to->made->procs, *labels = checked(malloc((size_t)procs * sizeof *labels));
    for (int rank = 0; rank < procs; rank++) {
        labels[rank] = to->wanted->node_of == NULL ? rank : to->wanted->node_of[rank];
    }
    collwise_nodes *made = collwise_nodes_make(labels, procs, MPI_COMM_WORLD);
    free(labels);
    return made;
}

collwise_hierarchy *collwise_hierarchy_of(MPI_Comm comm) {
    recording *to = current;
    if (to->nodes == NULL) {
        to->nodes = nodes_of_all(to);
    }
    if (to->now->hierarchy == NULL) {
        to->now->hierarchy = collwise_hierarchy_make(to->nodes, comm);
    }
    return to->now->hierarchy;
}

/* --- The collective of one process -------------------------------------------------------------------------------- */

/* Calls the algorithm as algorithms/collwise.c does for contiguous data, whose own blocks it copies. */
static void call_algorithm(const recording *to, const collwise_algorithm *algorithm, const recorded_call *call,
                           collwise_parameters with) {
    int root = call->root, at_root = to->now->rank == root;
    const MPI_Comm comm = MPI_COMM_WORLD;
    char *send = payload(0), *receive = payload(1);
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
        record_copy(at_root ? copied : 0);
        if (bytes > 0) {
            algorithm->gather(send, receive, bytes, root, comm, with);
        }
        break;
    case COLLWISE_GATHERV:
        record_copy(at_root ? copied : 0);
        algorithm->gatherv(send, bytes, receive, call->offsets, root, comm, with);
        break;
    case COLLWISE_SCATTER:
        if (bytes > 0) {
            algorithm->scatter(send, receive, bytes, root, comm, with);
        }
        record_copy(at_root ? copied : 0);
        break;
    case COLLWISE_SCATTERV:
        algorithm->scatterv(send, call->offsets, receive, bytes, root, comm, with);
        record_copy(at_root ? copied : 0);
        break;
    case COLLWISE_ALLGATHER:
        record_copy(copied);
        if (bytes > 0) {
            algorithm->allgather(receive, bytes, comm, with);
        }
        break;
    case COLLWISE_ALLGATHERV:
        record_copy(copied);
        if (call->offsets[to->made->procs] > 0) {
            algorithm->allgatherv(receive, call->offsets, comm, with);
        }
        break;
    case COLLWISE_ALLTOALL:
        record_copy(copied);
        if (bytes > 0) {
            algorithm->alltoall(send, receive, bytes, comm, with);
        }
        break;
    case COLLWISE_ALLTOALLV:
        record_copy(copied);
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
        record_copy(copied);
        algorithm->allreduce(receive, elements, op, comm, with);
        break;
    case COLLWISE_REDUCE_SCATTER:
    case COLLWISE_REDUCE_SCATTER_BLOCK:
        record_copy(call->offsets[to->made->procs] * op->element_bytes);
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
        fail(to, "no decisions of an MPI library were given, whose %s this mock-up calls", collective);
    }
    if (!to->wanted->library(collective, to->made->procs, call->message_bytes, &chosen)) {
        fail(to, "what the MPI library runs for its %s of %llu bytes is not known", collective,
             (unsigned long long)call->message_bytes);
    }
    const collwise_algorithm *found = collwise_find(collective, chosen.algorithm);
    if (found == NULL || found->guideline != NULL || collwise_procs_objection(found, to->made->procs) != NULL) {
        fail(to, "the MPI library's %s cannot be %s", collective, chosen.algorithm);
    }
    *known = (library_choice){.algorithm = found,
                              .message_bytes = call->message_bytes,
                              .with = {.part_bytes = chosen.part_bytes,
                                       .count = chosen.count == 0 ? found->default_count : chosen.count,
                                       .limit_bytes = chosen.limit_bytes}};
    return known;
}

void record_library_call(const recorded_call *call) {
    const library_choice *choice = choice_for(current, call);
    call_algorithm(current, choice->algorithm, call, choice->with);
}

static int is(const schedule_case *wanted, const char *experiment) {
    return strcmp(wanted->experiment, experiment) == 0;
}

static void call_experiment(const recording *to) {
    const schedule_case *wanted = to->wanted;
    if (is(wanted, "barrier")) {
        collwise_barrier_bruck(MPI_COMM_WORLD, (collwise_parameters){0});
    } else if (is(wanted, "exchange")) {
        collwise_split_binary_exchange(payload(1), wanted->message_bytes, wanted->root, MPI_COMM_WORLD);
    } else {
        collwise_parameters with = {.part_bytes = wanted->part_bytes,
                                    .count = wanted->count == 0 ? to->algorithm->default_count : wanted->count,
                                    .limit_bytes = wanted->limit_bytes};
        record_case_call(to, to->algorithm, wanted->message_bytes, with);
        if (is(wanted, "bcast_gather")) {
            collwise_barrier_bruck(MPI_COMM_WORLD, (collwise_parameters){0});
            record_case_call(to, collwise_find("gather", "linear"), wanted->gather_bytes, (collwise_parameters){0});
        }
    }
}

static process *begin_process(recording *to, int rank) {
    process *one = to->spare;
    if (one == NULL) {
        one = checked(calloc(1, sizeof *one));
        one->next_made = to->processes;
        to->processes = one;
    } else {
        to->spare = one->next_spare;
    }
    one->rank = rank;
    one->length = 0;
    one->copied = 0;
    one->requests = 0;
    one->most_requests = 0;
    to->progress_of[rank] = UNDER_WAY;
    return one;
}

static void end_process(recording *to, process *one) {
    keep(to, one);
    to->progress_of[one->rank] = RECORDED;
    to->changes++;
    free(one->hierarchy); /* the communicators live as long as the recording */
    one->hierarchy = NULL;
    free(one->integers);
    one->integers = NULL;
    one->next_spare = to->spare;
    to->spare = one;
}

/* May be called while another process is being recorded, which then goes on. */
static void record_process(recording *to, int rank) {
    process *before = to->now;
    to->now = begin_process(to, rank);
    if (to->made->procs > 1) {
        call_experiment(to);
        add_copies();
    }
    end_process(to, to->now);
    to->now = before;
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* Why the case cannot be recorded, or NULL. */
static const char *objection(const schedule_case *wanted, const collwise_algorithm *algorithm) {
    int procs = wanted->procs;
    if (procs < 1 || procs >= 1 << 28) {
        return "procs is not between 1 and 2^28 - 1";
    }
    if (wanted->root < 0 || wanted->root >= procs) {
        return "root is not a rank";
    }
    if (wanted->message_bytes > PAYLOAD_BYTES / 4 / (uint64_t)procs || wanted->message_bytes > 1 << 30) {
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
    return collwise_procs_objection(algorithm, procs);
}

/* Blocks of equal size in bytes; for a reduce_scatter, blocks in elements, into which the message is split. */
static size_t *make_offsets(const recording *to) {
    const schedule_case *wanted = to->wanted;
    size_t procs = (size_t)wanted->procs, *offsets = checked(malloc((procs + 1) * sizeof *offsets));
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

/* Those from whom others receive data of the program's own come first: a gatherv's sizes go towards the root. */
static void record_all(recording *to) {
    int procs = to->made->procs;
    int towards_root = to->algorithm != NULL && to->algorithm->kind == COLLWISE_GATHERV;
    for (int i = 0; i < procs; i++) {
        int rank = (to->wanted->root + (towards_root ? procs - 1 - i : i)) % procs;
        if (to->progress_of[rank] == NOT_YET) {
            record_process(to, rank);
            finish_fibers(to);
        }
    }
}

static void release(recording *to) {
    while (to->in_transit != NULL) {
        own_data *next = to->in_transit->next;
        free(to->in_transit);
        to->in_transit = next;
    }
    free(to->nodes);
    communicators_free(to->communicators);
    arrivals_free(to->arrivals);
    free(to->fiber_of);
    if (to->stacks != NULL) {
        munmap(to->stacks, (to->fiber_count + 1) * STACK_BYTES);
    }
    free(to->fibers);
    while (to->processes != NULL) {
        process *next = to->processes->next_made;
        free(to->processes->words);
        free(to->processes->hierarchy);
        free(to->processes->integers);
        free(to->processes);
        to->processes = next;
    }
    free(to->offsets);
    free(to->progress_of);
    free(to->program_table);
    free(to->size_table);
    free(to->seen_by);
    free(to->sources);
}

enum { SIZE_PLACES = 64 };

schedule *schedule_record(const schedule_case *wanted, char *problem, size_t problem_bytes) {
    const collwise_algorithm *algorithm = collwise_find(wanted->collective, wanted->algorithm);
    return schedule_record_algorithm(wanted, algorithm, problem, problem_bytes);
}

schedule *schedule_record_algorithm(const schedule_case *wanted, const collwise_algorithm *algorithm, char *problem,
                                    size_t problem_bytes) {
    const char *wrong = objection(wanted, algorithm);
    if (wrong != NULL) {
        snprintf(problem, problem_bytes, "%s", wrong);
        return NULL;
    }
    recording *to = calloc(1, sizeof *to), *before = current;
    if (to == NULL) {
        snprintf(problem, problem_bytes, "out of memory");
        return NULL;
    }
    *to = (recording){.wanted = wanted, .algorithm = algorithm, .problem = problem, .problem_bytes = problem_bytes};
    if (task_window_read(wanted->experiment, &to->window)) {
        to->has_tasks = 1;
        to->tasks = (collwise_observer){.first_task = to->window.first,
                                        .end_task = to->window.end,
                                        .steps = to->window.steps[0] == '\0' ? NULL : to->window.steps};
    }
    size_t procs = (size_t)wanted->procs, places = SIZE_PLACES;
    while (places < 2 * procs) {
        places *= 2;
    }
    to->program_places = places;
    to->size_places = SIZE_PLACES;
    to->op = (collwise_operation){.element_bytes = wanted->message_bytes % sizeof(double) == 0 ? sizeof(double) : 1,
                                  .commutative = 1,
                                  .contiguous = 1};
    current = to;
    if (setjmp(to->give_up) == 0) {
        to->made = checked(calloc(1, sizeof *to->made));
        to->made->procs = wanted->procs;
        to->made->program_of = checked(calloc(procs, sizeof *to->made->program_of));
        to->progress_of = checked(calloc(procs, 1));
        to->program_table = checked(calloc(to->program_places, sizeof *to->program_table));
        to->size_table = checked(calloc(to->size_places, sizeof *to->size_table));
        to->seen_by = checked(calloc(procs, sizeof *to->seen_by));
        to->sources = checked(calloc(procs, sizeof *to->sources));
        to->offsets = make_offsets(to);
        record_all(to);
    } else {
        schedule_free(to->made);
        to->made = NULL;
    }
    schedule *made = to->made;
    current = before;
    release(to);
    free(to);
    return made;
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

static int same_words(const schedule_program *one, const schedule_program *other) {
    return one->length == other->length && memcmp(one->words, other->words, one->length * sizeof *one->words) == 0;
}

int schedule_equal(const schedule *one, const schedule *other) {
    if (one->procs != other->procs || one->program_count != other->program_count ||
        one->size_count != other->size_count || one->messages != other->messages ||
        memcmp(one->program_of, other->program_of, (size_t)one->procs * sizeof *one->program_of) != 0 ||
        memcmp(one->sizes, other->sizes, one->size_count * sizeof *one->sizes) != 0) {
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
