/* Schedules: the sends, receives, waits and computation of every process of a collective, in the order of its program.
 *
 * A program is a list of 8-byte words. Peers are relative to the process, so that processes which do the same, such as
 * those of a ring, share one program. They are so many ranks ahead, modulo P; in a mirrored schedule, of algorithms
 * whose partners differ in a bit of their ranks, they are given by the bits in which the ranks differ. A size is given
 * by its position in the schedule's table of sizes.
 *
 * A process that does several things at once, each of which waits for messages of its own, has a list of words for each
 * of them: a strand. Which one goes on next depends on which message comes first on the network that is played. */
#ifndef COLLWISE_RECORDER_H
#define COLLWISE_RECORDER_H

#include "collwise.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    SCHEDULE_SEND,              /* a blocking send to a peer */
    SCHEDULE_RECEIVE,           /* a blocking receive from a peer */
    SCHEDULE_START_SEND,        /* a non-blocking send: makes a request */
    SCHEDULE_START_SYNCHRONOUS, /* the same, complete only when its receive has started */
    SCHEDULE_START_RECEIVE,     /* a non-blocking receive: makes a request */
    SCHEDULE_WAIT,              /* for `peer` requests, of which the first was made `size` requests ago; in a strand:
                                   for all that it has made since its last wait */
    SCHEDULE_FORK,              /* `peer` strands follow, in `size` words; then the process goes on when all are over */
    SCHEDULE_STRAND,   /* a strand of `size` words follows, which makes at most `peer` requests between waits */
    SCHEDULE_TELL,     /* a counter, which a peer on the same node looks at, grows: `size` is its number, and above
                        SCHEDULE_COUNTER_BITS one more than the size of the one-sided operation that does so, 0: none */
    SCHEDULE_AWAIT,    /* such a counter of a peer, to grow once more than the process has seen: makes a request */
    SCHEDULE_REDUCE,   /* a local reduction of that size */
    SCHEDULE_COPY,     /* a local copy of that size */
    SCHEDULE_ALLOCATE, /* memory of that size for the algorithm's own use */
    SCHEDULE_MOVE      /* a copy of that size to or from memory of a node's processes, `peer` times by MPI_Get */
} schedule_kind;

/* kind: 4 bits, peer: 28 bits, size: 32 bits. */
typedef uint64_t schedule_word;

static inline schedule_word schedule_make_word(schedule_kind kind, uint32_t peer, uint32_t size) {
    return (uint64_t)kind << 60 | (uint64_t)(peer & 0xfffffffU) << 32 | size;
}
static inline schedule_kind schedule_kind_of(schedule_word word) { return (schedule_kind)(word >> 60); }
static inline uint32_t schedule_peer_of(schedule_word word) { return (uint32_t)(word >> 32) & 0xfffffffU; }
static inline uint32_t schedule_size_of(schedule_word word) { return (uint32_t)word; }

/* Local work, without other processes: kinds from SCHEDULE_REDUCE on. */
enum { SCHEDULE_LOCAL_KINDS = SCHEDULE_MOVE - SCHEDULE_REDUCE + 1 };
static inline int schedule_is_local(schedule_kind kind) { return kind >= SCHEDULE_REDUCE; }
/* Sends and receives. */
static inline int schedule_is_message(schedule_kind kind) { return kind < SCHEDULE_WAIT; }
static inline int schedule_is_receive(schedule_kind kind) {
    return kind == SCHEDULE_RECEIVE || kind == SCHEDULE_START_RECEIVE;
}

/* Things reach a process in order by a way: messages of one process, a counter of one, or the process's own copies
 * through memory. The way's number has the other process, relative to the receiver, and which of these it is in the
 * bits above. */
enum { SCHEDULE_PEER_BITS = 28, SCHEDULE_COUNTER_BITS = 2, SCHEDULE_OWN_WAY = 7U << SCHEDULE_PEER_BITS };
static inline uint32_t schedule_counter_way(uint32_t relative, uint32_t counter) {
    return relative | ((counter & ((1U << SCHEDULE_COUNTER_BITS) - 1)) + 1) << SCHEDULE_PEER_BITS;
}
static inline uint32_t schedule_way_peer(uint32_t way) { return way & ((1U << SCHEDULE_PEER_BITS) - 1); }
/* True if something reaches the process by the word's way. */
static inline int schedule_is_reached(schedule_kind kind) {
    return schedule_is_receive(kind) || kind == SCHEDULE_AWAIT || kind == SCHEDULE_MOVE;
}
static inline uint32_t schedule_way_of(schedule_word word) {
    switch (schedule_kind_of(word)) {
    case SCHEDULE_AWAIT:
        return schedule_counter_way(schedule_peer_of(word), schedule_size_of(word));
    case SCHEDULE_MOVE:
        return SCHEDULE_OWN_WAY;
    default:
        return schedule_peer_of(word);
    }
}

/* The ways by which something reaches a program, as a table: 1 more than each, 0 where there is none; and their
 * numbers. */
typedef struct {
    uint32_t source_and_one, number;
} schedule_source;

typedef struct {
    schedule_source *places;
    uint32_t count;
    uint32_t bits : 31;     /* the table has 2^bits places */
    uint32_t is_direct : 1; /* a source's place is its distance, as where a process receives from most others */
} schedule_sources;

typedef struct {
    schedule_word *words;
    size_t length;
    int is_cut;               /* it is the beginning of what the process does */
    uint32_t requests;        /* the largest number of requests between the oldest one waited for and the newest */
    uint32_t strands;         /* the most at once */
    uint32_t strand_requests; /* the most that strands make at once between their waits */
    schedule_sources sources;
} schedule_program;

/* The place of a source in its program's table, or the free place where it belongs. */
static inline schedule_source *schedule_find_source(schedule_sources among, uint32_t way) {
    uint32_t mask = (1U << among.bits) - 1;
    uint32_t place = among.is_direct ? way : way * 0x9e3779b1U >> (32 - among.bits);
    while (among.places[place].source_and_one != 0 && among.places[place].source_and_one != way + 1) {
        place = (place + 1) & mask;
    }
    return &among.places[place];
}

typedef struct {
    int procs;
    uint32_t *program_of; /* each process's program */
    schedule_program *programs;
    size_t program_count;
    uint64_t *sizes; /* in bytes */
    size_t size_count;
    uint64_t messages, bytes;      /* sent by all processes together */
    collwise_memory extra;         /* the largest extra memory of a process: that of a mock-up */
    int is_begin;                  /* some programs are cut */
    int has_synchronous;           /* some sends are synchronous */
    int has_strands;               /* some programs have */
    int has_windows;               /* some processes share memory */
    int is_mirrored;               /* peers are relative by the bits of ranks; P is a power of two */
    struct schedule_block *blocks; /* the memory of the programs */
} schedule;

/* The process that lies so far from another one. */
static inline int schedule_peer(const schedule *of, int rank, uint32_t relative) {
    int peer = of->is_mirrored ? rank ^ (int)relative : rank + (int)relative;
    return peer < of->procs ? peer : peer - of->procs;
}
/* The distance in the opposite direction: from the peer to the process. */
static inline uint32_t schedule_back(const schedule *of, uint32_t relative) {
    return of->is_mirrored || relative == 0 ? relative : (uint32_t)of->procs - relative;
}

/* The peer's way that a send or a counter goes. */
static inline uint32_t schedule_way_to(const schedule *of, schedule_word word) {
    uint32_t back = schedule_back(of, schedule_peer_of(word));
    return schedule_kind_of(word) == SCHEDULE_TELL ? schedule_counter_way(back, schedule_size_of(word)) : back;
}

/* An algorithm of the catalogue that does what an MPI library does for a call of its own collective. */
typedef struct {
    char algorithm[64];
    uint64_t part_bytes, limit_bytes;
    int count;
} schedule_choice;

/* Tells what a library runs for a message of the named collective. Bytes are as the catalogue counts them. Returns 0
 * if that is not known. */
typedef int schedule_library(const char *collective, int procs, uint64_t message_bytes, schedule_choice *chosen);

/* The case to record: a collective of the catalogue on a message of `message_bytes`, as the benchmark runs it. */
typedef struct {
    const char *experiment; /* collective, bcast_gather, barrier, exchange (simulator/programs/benchmark.c), or with
                               tasks (simulator/programs/task_window.h) */
    const char *collective, *algorithm;
    int procs, root;
    uint64_t message_bytes, part_bytes, gather_bytes, limit_bytes;
    int count;
    const int32_t *node_of; /* of each process, at least 0, for algorithms that split communicators by node; NULL: each
                               process has a node of its own */
    const int32_t *socket_of;  /* of each process, on its node; NULL: a node is one socket */
    schedule_library *library; /* for mock-ups, which call a library's collectives; NULL: they cannot be recorded */
} schedule_case;

/* Records a case. Returns NULL, with the reason in `problem`, if there is no such algorithm, if it does not run on
 * so many processes, or if memory runs out. Thread-safe. */
schedule *schedule_record(const schedule_case *wanted, char *problem, size_t problem_bytes);
/* The same with an algorithm that need not be in the catalogue; the case's names are not used. */
schedule *schedule_record_algorithm(const schedule_case *wanted, const collwise_algorithm *algorithm, char *problem,
                                    size_t problem_bytes);
/* The same for the root and the process after it alone: the programs of others are empty. Fails also for algorithms
 * whose processes have to know of others: those that split communicators, but for the ones of nodes and leaders, or
 * send data of their own. */
schedule *schedule_record_root(const schedule_case *wanted, char *problem, size_t problem_bytes);
/* The same for the beginning of what each process does, at most `max_words` words. The programs that are not recorded
 * to their end are cut, never between strands. */
schedule *schedule_record_begin(const schedule_case *wanted, uint64_t max_words, char *problem, size_t problem_bytes);
void schedule_free(schedule *made);

/* Until it is called with NULL, recordings and plays of this thread fail soon after another thread sets the flag. */
void schedule_obey(const atomic_int *flag);
int schedule_is_stopped(void);

/* True if the processes do the same in both, with messages and local work of the same sizes: their times are equal
 * then. */
int schedule_equal(const schedule *one, const schedule *other);

/* The memory that a schedule takes, in bytes. */
uint64_t schedule_memory(const schedule *made);

#endif
