/* The shared parts of the recorder: the state of a recording; failure, memory, words and programs (programs.c); memory
 * of the algorithms (allocations.c); ranks (ranks.c); what processes tell one another meanwhile (exchanges.c);
 * operations that a process does at once (strands.c); memory that processes share (windows.c); which algorithms have
 * processes that all do the same (symmetric.c); the recording MPI (calls.c); what the algorithms need besides it
 * (runtime.c, places.c); and what records a case by these (recorder.c). */
#ifndef COLLWISE_RECORDING_H
#define COLLWISE_RECORDING_H

#include "../../programs/task_window.h"
#include "../communicators.h"
#include "../library_calls.h"
#include "../recorder.h"
#include "tasks.h"

#include <setjmp.h>

/* Users' data lies at addresses that nobody ever reads or writes, and that no process has: processors know no more than
 * 57 bits. There are buffers for what is sent and received, the memory of mock-ups and scratch memory. */
#define PAYLOAD_START ((uintptr_t)1 << 62)
#define PAYLOAD_BUFFER_BYTES ((uintptr_t)1 << 60)
enum { PAYLOAD_BUFFERS = 4 };

/* The kinds of ways by which something reaches a process (schedule_way_of): messages, counters, and its own copies. */
enum { RECORDING_WAYS = (SCHEDULE_OWN_WAY >> SCHEDULE_PEER_BITS) + 1 };

static inline int recording_is_payload(const void *address) {
    return (uintptr_t)address - PAYLOAD_START < PAYLOAD_BUFFERS * PAYLOAD_BUFFER_BYTES;
}

static inline char *recording_payload(int which) {
    return (char *)(PAYLOAD_START + (uintptr_t)which * PAYLOAD_BUFFER_BYTES);
}

/* Data of the program's own that one process sends another. */
typedef struct own_data {
    struct own_data *next;
    int source;
    int is_taken; /* in the present attempt */
    size_t bytes;
    char data[];
} own_data;

/* A process and others tell one another the same in all attempts to record it. */
typedef struct {
    own_data *first, *last; /* sent to it */
    size_t sent;            /* by it */
    MPI_Comm *parts;        /* what its splits have given, COMMUNICATORS_UNKNOWN until all members have come there */
    size_t splits, split_room;
    unsigned char is_queued, is_recorded;
} exchange;

/* Memory that an algorithm has allocated, among that of its process. */
typedef struct allocation {
    struct allocation *next, **link; /* where it is linked, NULL: it belongs to no process */
    max_align_t memory[];
} allocation;

/* A process that is being recorded. */
typedef struct {
    int rank;
    schedule_word *words;
    size_t length, room;
    uint64_t messages, bytes; /* that it sends */
    uint64_t copied;          /* bytes of copies since the last word */
    int64_t requests;         /* made so far */
    uint32_t max_requests;
    size_t fork;        /* one more than the place of the fork in whose strands it is; 0: it is in none */
    uint32_t in_strand; /* the same as max_requests, of the strand */
    uint32_t strands, strand_requests; /* the most of a fork */
    size_t splits, sent;               /* in this attempt */
    collwise_hierarchy *hierarchy;     /* NULL unless its algorithm asks for it */
    int *integers;                     /* the buffer of a mock-up, else NULL */
    allocation *allocations;
    int is_cut;       /* it does more than is recorded */
    int is_abandoned; /* it needs something of others first */
    jmp_buf ends;     /* where a process goes on that is cut or abandoned */
} process;

/* The algorithm that the MPI library runs for the latest call of a collective. */
typedef struct {
    const collwise_algorithm *algorithm; /* NULL: there was no call */
    uint64_t message_bytes;
    collwise_parameters with;
} library_choice;

typedef struct {
    const schedule_case *wanted;
    int processes_alone;       /* how many are recorded from the root on; 0: all */
    int program_is_collective; /* the experiment is the collective alone */
    uint64_t max_words;        /* after which the recording of a process ends, 0: never */
    int stops;                 /* whoever needs something of others is cut */
    int has_tasks;
    task_window window;
    collwise_observer tasks; /* what is run of a collective made of tasks */
    const collwise_algorithm *algorithm;
    size_t *offsets; /* of the blocks, for the collectives with a size for each process */
    collwise_operation op;
    library_choice library[COLLWISE_COLLECTIVES];
    void (*record_library_call)(const recorded_call *call);
    schedule *made;
    process now;
    exchange *exchanges; /* of each process */
    int *queue;          /* a ring of P: processes to be recorded */
    int queue_first, queue_length;
    uint32_t *program_table; /* programs by hash, 1 more than their number; a power of two places */
    size_t program_places, program_room;
    uint32_t *size_table; /* sizes by hash, 1 more than their number */
    size_t size_places, size_room;
    uint32_t latest_size;         /* 1 more than the number found last */
    uint32_t latest_program;      /* the same; many processes do what the one before them does */
    uint32_t *seen_by, *sources;  /* each way (schedule_way_of): the last program that has it; a list */
    collwise_nodes *nodes;        /* of all processes, NULL before the first one asks */
    collwise_nodes *sockets;      /* the same by socket */
    communicators *communicators; /* NULL before the first one but that of all processes */
    MPI_Comm *levels; /* those of each node, then those of the leaders at each place of a node; NULL: not made yet */
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
/* Ends the recording of the process, which does more: that of a fork is not begun. */
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
/* Appends a wait for requests in succession. */
void recording_wait(int64_t first, uint32_t count);
static inline void recording_copy(size_t bytes) { recording_now->now.copied += bytes; }

/* The place of a process relative to the recorded one. */
uint32_t recording_relative(int peer);

/* True if processes are best told apart by the bits of their ranks (symmetric.c). */
int recording_is_mirrored(const recording *to);
/* The distance of ranks that are known to do the same; P if nothing is known (symmetric.c). */
int recording_period(const recording *to);

/* Queues a process to be recorded, unless it is queued or recorded. */
void recording_queue(recording *to, int rank);
/* Takes the next one from the queue. Returns NOBODY if that is empty. */
enum { NOBODY = -1 };
int recording_next(recording *to);
/* The present process has received nothing yet in this attempt to record it. */
void recording_begin_attempt(recording *to);
/* Data of the program's own. Where it has not been sent yet the process is abandoned. */
void recording_deposit(const void *data, size_t bytes, int destination);
void recording_collect(void *data, size_t bytes, int source);
/* The part of a communicator that a process gets. Where others have not come there yet it is abandoned. */
MPI_Comm recording_split(recording *to, MPI_Comm comm, int colour, int key);
void recording_free_exchanges(recording *to);

/* Makes room for communicators, unless there are some. */
void recording_make_communicators(recording *to);

/* Memory of collwise_allocate belongs to no process any more. */
void recording_disown(void *memory);
/* Frees memory of collwise_allocate: the algorithms' free(). */
void recording_free(void *memory);
void recording_free_all(process *of);

/* The size of a communicator, the process's own rank in it, and the process that has a rank in it. */
int recording_size_of(MPI_Comm comm);
int recording_rank_in(MPI_Comm comm);
int recording_process_of(MPI_Comm comm, int rank);

/* Frees what is kept of nodes and sockets; the communicators live as long as the recording. */
void recording_forget_hierarchy(process *of);

#endif
