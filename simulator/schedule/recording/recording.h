/* The shared parts of the recorder: the state of a recording; failure, memory, words and programs (programs.c);
 * processes that wait for others (fibers.c); which algorithms have processes that all do the same (symmetric.c); the
 * recording MPI (calls.c); what the algorithms need besides it (runtime.c); and what records a case by these
 * (recorder.c). */
#ifndef COLLWISE_RECORDING_H
#define COLLWISE_RECORDING_H

#include "../../programs/task_window.h"
#include "../arrivals.h"
#include "../communicators.h"
#include "../recorder.h"
#include "tasks.h"

#include <setjmp.h>
#include <ucontext.h>

/* Users' data lies at addresses that nobody ever reads or writes, and that no process has: processors know no more than
 * 57 bits. There are buffers for what is sent and received, the memory of mock-ups and scratch memory. */
#define PAYLOAD_START ((uintptr_t)1 << 62)
#define PAYLOAD_BUFFER_BYTES ((uintptr_t)1 << 60)
enum { PAYLOAD_BUFFERS = 4 };

static inline int recording_is_payload(const void *address) {
    return (uintptr_t)address - PAYLOAD_START < PAYLOAD_BUFFERS * PAYLOAD_BUFFER_BYTES;
}

static inline char *recording_payload(int which) {
    return (char *)(PAYLOAD_START + (uintptr_t)which * PAYLOAD_BUFFER_BYTES);
}

/* Data of the program's own that one process sends another. */
typedef struct own_data {
    struct own_data *next;
    int source, destination;
    size_t bytes;
    char data[];
} own_data;

/* Memory that an algorithm has allocated, among that of its process. */
typedef struct allocation {
    struct allocation *next, **link; /* where it is linked, NULL: it belongs to no process */
    max_align_t memory[];
} allocation;

/* A process that is being recorded. */
typedef struct process {
    struct process *next_made, *next_spare;
    int rank;
    schedule_word *words;
    size_t length, room;
    uint64_t copied;  /* bytes of copies since the last word */
    int64_t requests; /* made so far */
    uint32_t max_requests;
    collwise_hierarchy *hierarchy; /* NULL unless its algorithm asks for it */
    int *integers;                 /* the buffer of a mock-up, else NULL */
    allocation *allocations;
    int is_cut;   /* it does more than is recorded */
    jmp_buf ends; /* where a process goes on that is cut */
} process;

typedef enum { NOT_YET, UNDER_WAY, RECORDED } progress;

/* The algorithm that the MPI library runs for the latest call of a collective. */
typedef struct {
    const collwise_algorithm *algorithm; /* NULL: there was no call */
    uint64_t message_bytes;
    collwise_parameters with;
} library_choice;

/* A process that runs on a stack of its own. */
typedef struct {
    jmp_buf goes_on;   /* if it has begun */
    const char *frame; /* the latest one in which it waited for messages, NULL before that */
    int has_begun;
    int rank;
    int awaits_messages; /* it can go on when one arrives, not when others do anything else */
} fiber;

/* The stacks are mapped together, and take memory only where they are used. Nothing on the algorithms' stacks is large:
 * the recording build refuses frames of more than 16 KiB. */
enum { STACK_BYTES = 256 << 10 };

typedef struct {
    const schedule_case *wanted;
    int processes_alone;       /* how many are recorded from the root on; 0: all */
    int program_is_collective; /* the experiment is the collective alone */
    uint64_t max_words; /* after which the recording of a process ends, 0: never; if messages arrive, on average */
    uint64_t words;     /* of all processes */
    int stops;          /* all processes are cut as soon as they go on */
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
    uint32_t latest_program;     /* the same; many processes do what the one before them does */
    uint32_t *seen_by, *sources; /* each relative process: 1 more than the last program that receives from it; a list */
    own_data *in_transit;
    collwise_nodes *nodes;        /* of all processes, NULL before the first one asks */
    collwise_nodes *sockets;      /* the same by socket */
    communicators *communicators; /* NULL before the first one but that of all processes */
    MPI_Comm *levels; /* those of each node, then those of the leaders at each place of a node; NULL: not made yet */
    fiber *fibers;    /* NULL before processes wait for one another */
    size_t fiber_count;
    char *stacks;
    ucontext_t begins,
        left;           /* long, and therefore not on the stacks of processes that wait: that of a fiber that begins,
                           and one to which nothing returns (AddressSanitizer knows swapcontext, not setcontext) */
    fiber *running;     /* NULL: the process that was recorded when the first split came */
    jmp_buf resumes;    /* it, while a fiber runs */
    uint64_t changes;   /* which could end the wait of a process */
    arrivals *arrivals; /* of messages, NULL before a sequence of tasks begins */
    fiber **fiber_of;   /* of each process, while there are arrivals; NULL for that without one */
    size_t idle;        /* fibers that await messages or are done */
    int has_failed;     /* in a fiber */
    process *processes, *spare; /* all that were made, and those whose words can be used again */
    jmp_buf give_up;
    char *problem;
    size_t problem_bytes;
} recording;

/* Programs are kept in blocks of doubling size. */
struct schedule_block {
    struct schedule_block *next;
    size_t bytes, used;
    max_align_t memory[];
};

extern _Thread_local recording *recording_now;

_Noreturn void recording_fail(recording *to, const char *format, ...);
/* Fails if memory has run out. */
void *recording_checked(void *memory);
/* Makes room for one more item; rooms double. */
void *recording_grown(void *items, size_t count, size_t *room, size_t item_bytes);
/* Ends the recording of the process, which does more. */
_Noreturn void recording_cut(recording *to);
/* Processes that are recorded alone do not know others. */
void recording_require_others(recording *to);

/* The number of a size in the schedule's table. */
uint32_t recording_size_number(recording *to, uint64_t bytes);
/* Keeps the program of a process that is done. */
void recording_keep(recording *to, const process *done);
/* Adds to each program that was cut the processes that send it messages which it does not receive so far. */
void recording_add_sources(recording *to);

/* Appends a word to the recorded process's program, and a word for its copies since the last one. */
void recording_add(schedule_kind kind, uint32_t peer, uint32_t size);
void recording_add_copies(void);
static inline void recording_copy(size_t bytes) { recording_now->now->copied += bytes; }

/* True if processes are best told apart by the bits of their ranks (symmetric.c). */
int recording_is_mirrored(const recording *to);
/* True if all processes do the same (symmetric.c). */
int recording_is_symmetric(const recording *to);

/* Records a process, also while another one is being recorded, which then goes on. */
void recording_process(recording *to, int rank);

/* Makes room for communicators, unless there are some. */
void recording_make_communicators(recording *to);

/* Gives a stack to each process that has not begun, unless processes have stacks. */
void recording_make_fibers(recording *to);
void recording_finish_fibers(recording *to);
/* Goes on with what resumed the fiber that runs, which never goes on. */
_Noreturn void recording_leave_fiber(recording *to);
/* The process can go on only after something has changed. */
void recording_wait_for_others(recording *to);
/* The same where only a message can be what has changed. */
void recording_wait_for_messages(recording *to);
/* From now on messages arrive at times of their own. */
void recording_begin_arrivals(recording *to);
void recording_reduce(uint64_t bytes);
void recording_post(int is_send, int source, int destination, uint64_t bytes, int64_t request);

/* Frees memory of collwise_allocate: the algorithms' free(). */
void recording_free(void *memory);
void recording_free_all(process *of);

/* The process's own rank in a communicator, and the process that has a rank in it. */
int recording_rank_in(MPI_Comm comm);
int recording_process_of(MPI_Comm comm, int rank);

/* Frees what is kept of nodes and sockets; the communicators live as long as the recording. */
void recording_forget_hierarchy(process *of);

#endif
