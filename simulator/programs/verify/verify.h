/* Declarations that the parts of verify share: data of known layout in memory, one call of a collective, a tally. */
#ifndef COLLWISE_VERIFY_H
#define COLLWISE_VERIFY_H

#include "internal.h"

#include <stdbool.h>
#include <stdint.h>

/* --- Data (data.c) ----------------------------------------------------------------------------------------------- */

/* The ways to describe the data. Those of one family have equal signatures for the same message. */
typedef enum {
    VERIFY_INT,
    VERIFY_BYTE,
    VERIFY_DOUBLE,
    VERIFY_DOUBLE_INT,   /* a named type with a hole at its end */
    VERIFY_STRIDED,      /* ints with a hole behind each */
    VERIFY_PAIR,         /* a struct of a double and an int */
    VERIFY_SWAPPED_PAIR, /* the same signature, the int first in memory */
    VERIFY_CONTIGUOUS,
    VERIFY_VECTOR,
    VERIFY_INDEXED,  /* no holes, but out of memory order */
    VERIFY_HINDEXED, /* holes, and out of memory order */
    VERIFY_NEGATIVE, /* a struct resized to a negative lower bound */
    VERIFY_NESTED,   /* contiguous of a duplicate of a vector */
    VERIFY_PADDED,   /* a struct that ends in a hole, as others in it */
    VERIFY_ROOMY,    /* contiguous, resized to a longer extent */
    VERIFY_VAST,     /* two blocks that are more than 2 GiB apart: memory of which few pages can be used */
    /* Adjacent blocks, which start above 0: indexed and struct; and which start below 0: blocks of one length. */
    VERIFY_ADJACENT,
    VERIFY_ADJACENT_STRUCT,
    VERIFY_ADJACENT_BELOW,
    VERIFY_SPREAD,      /* blocks of one length with gaps, on both sides of 0 */
    VERIFY_BACKWARDS,   /* a vector of negative stride */
    VERIFY_INTERLEAVED, /* resized: an element's data lies on both sides of its extent, between that of others */
    VERIFY_DEEP,        /* a struct of a duplicate of indexed and a resized vector, strided, resized */
    VERIFY_WHOLE,       /* one strided type for the whole message */
    VERIFY_KINDS        /* how many there are */
} verify_kind;

const char *verify_kind_name(verify_kind kind);
/* The number of elements in a message of about `ints` ints (pairs, bytes), and the bytes of its signature. Kinds that
 * need six ints an element make it a multiple of six. */
int verify_elements(verify_kind kind, int ints);
size_t verify_message_bytes(verify_kind kind, int ints);

/* The type of elements that count from an address, for buffers at MPI_BOTTOM. To be freed. */
MPI_Datatype verify_type_at(const void *address, MPI_Datatype type);

/* Elements of six ints: the kind that a datatype is, VERIFY_KINDS if it is none of these, the address from which its
 * elements count (0 unless `verify_type_at` made it), and where in an element of that kind the ints lie, in signature
 * order. */
enum { VERIFY_SIX = 6 };
verify_kind verify_kind_of_six(MPI_Datatype type, ptrdiff_t *address);
void verify_places_of_six(verify_kind kind, ptrdiff_t places[VERIFY_SIX]);

/* A buffer of the program: blocks of elements of one datatype, and around and between them guard bytes. It is kept
 * twice: as the program has it, and as it should be after the call. */
typedef struct {
    verify_kind kind;
    MPI_Datatype type;
    int blocks;
    int *counts, *displacements; /* of the blocks, in elements */
    int repeats;                 /* of the kind's map in an element of `type` */
    ptrdiff_t extent, origin;
    size_t bytes;            /* of the memory, */
    size_t parts;            /* of which so many parts can be used: */
    size_t part_bytes, step; /* each of that size, so many bytes from one's start to the next one's */
    char *found, *expected;
} verify_buffer;

/* One block. */
verify_buffer verify_buffer_of_one(verify_kind kind, int ints);
/* Blocks of equal size in order. */
verify_buffer verify_buffer_of_blocks(verify_kind kind, int ints, int blocks);
/* Blocks of `ints[i]`, for most values of `serial` out of order and with gaps between them; displacements may be
 * negative. VERIFY_WHOLE, which fits only one size, becomes VERIFY_STRIDED. */
verify_buffer verify_buffer_of_scattered(verify_kind kind, const int *ints, int blocks, unsigned serial);
void verify_buffer_free(verify_buffer *buffer);
/* The arguments that the program passes to MPI. */
void *verify_buffer_pointer(const verify_buffer *buffer);

/* Writes a block's signature bytes in their places: as the program's data, or as what it should become, or both. */
typedef enum { VERIFY_BEFORE = 1, VERIFY_AFTER = 2, VERIFY_THROUGHOUT = 3 } verify_time;
void verify_buffer_write(verify_buffer *buffer, verify_time when, int block, const char *packed);
/* The same with a message of its own for each (serial, message). */
void verify_buffer_fill(verify_buffer *buffer, verify_time when, int block, unsigned serial, int message);
/* False, with the reason in `complaint`, if a byte is not what it should be. */
bool verify_buffer_is_right(const verify_buffer *buffer, const char *name, MPI_Comm comm, char *complaint);

/* A number that looks random; every byte of data is one. */
static inline uint32_t verify_mix(unsigned serial, int message, unsigned index) {
    uint32_t mixed = (serial * 2654435761u) ^ ((unsigned)message * 2246822519u) ^ (index * 3266489917u);
    mixed ^= mixed >> 15;
    mixed *= 668265263u;
    return mixed ^ mixed >> 17;
}

/* --- Counting (tally.c) ------------------------------------------------------------------------------------------ */

enum { VERIFY_MAX_CASES = 8192, VERIFY_TEXT = 320 };

typedef enum { VERIFY_RIGHT, VERIFY_WRONG, VERIFY_NOT_APPLICABLE } verify_outcome;

/* This process's tally of the cases so far. All processes count the same cases, also those that take no part. */
typedef struct {
    int cases, not_applicable;
    int failed[VERIFY_MAX_CASES]; /* 0 or 1 */
    int first_failed;             /* a case, or VERIFY_MAX_CASES */
    char first_failure[VERIFY_TEXT];
} verify_tally;

void verify_start(verify_tally *tally);
/* Counts one case, described by `what`. */
void verify_count(verify_tally *tally, const char *what, verify_outcome outcome, const char *complaint);
/* Counts cases that other processes run. */
void verify_skip(verify_tally *tally, int cases);
/* Collective over the world: one JSON line from its first process, of what all processes found. */
void verify_report(const verify_tally *tally, const char *collective, const char *algorithm);
/* A JSON line from the first process of the world: where the program is. */
void verify_say_started(const char *collective, const char *algorithm, int procs, const char *what);

/* --- One call of a collective (call.c, movement.c, reductions.c, barrier.c) -------------------------------------- */

typedef enum {
    VERIFY_SUM,         /* of ints */
    VERIFY_MAX,         /* of doubles */
    VERIFY_XOR,         /* of bytes */
    VERIFY_MAXLOC,      /* of double_int */
    VERIFY_ROUNDED_SUM, /* of doubles, where the order of additions shows in the last bits */
    VERIFY_CIRCLE,      /* x + y + x y: the program's own, commutes; ints, also six an element */
    VERIFY_COMPOSE      /* affine maps one after the other: the program's own, does not commute; six ints */
} verify_operation;

struct verify_sequence;
struct verify_conductor;

/* The root, or every other process in collectives without one, describes its data as the first of the two kinds. */
typedef struct {
    const collwise_algorithm *algorithm;
    unsigned serial;
    int root, ints;
    verify_kind kinds[2];
    verify_operation operation; /* of reductions, */
    verify_kind operand;        /* and the kind of their elements on all processes */
    bool in_place;
    bool is_absolute; /* whether buffers are at MPI_BOTTOM and the types have their addresses */
    collwise_parameters with;
    struct verify_sequence *sequence;         /* that the call is part of, else NULL; */
    const struct verify_conductor *conductor; /* its way to make calls */
    bool is_mpis_own;                         /* whether MPI's own algorithm runs, */
    bool is_non_blocking;                     /* and its non-blocking function is called */
} verify_call;

/* A sequence's own way to make calls. */
typedef struct verify_conductor {
    /* Makes a call, and others while it is under way if it is non-blocking. */
    void (*make)(const verify_call *call, const collwise_call *made);
    /* Whether all processes of a barrier have entered it, as they must have when one leaves. */
    bool (*all_have_entered)(const verify_call *call, char complaint[VERIFY_TEXT]);
} verify_conductor;

/* The lists of elements of which a call is made (cases.c): */
typedef enum {
    VERIFY_ROOTS,
    VERIFY_DATA,
    VERIFY_REDUCTIONS,
    VERIFY_PLACES, /* in place, or not */
    VERIFY_PARTS,
    VERIFY_COUNTS,
    VERIFY_LIMITS,
    VERIFY_LISTS /* how many there are */
} verify_list;

/* The call of the entries at these places, each taken modulo its list's length, and of at most `ints` items. */
verify_call verify_call_of(const collwise_algorithm *algorithm, unsigned serial, const unsigned at[VERIFY_LISTS],
                           int ints, int procs);
/* True if the algorithm lets choose how processes of a node communicate. */
bool verify_has_within(const collwise_algorithm *algorithm);
/* Add words to a text. */
void verify_describe_parameters(const collwise_algorithm *algorithm, collwise_parameters with, char text[VERIFY_TEXT]);
void verify_describe_data(const verify_call *call, char text[VERIFY_TEXT]);

/* Makes a call with these arguments, in the way that `call` says. */
void verify_make(const verify_call *call, const collwise_call *made);

bool verify_is_reduction(collwise_collective kind);
const char *verify_operation_name(verify_operation operation);

/* Makes the call, if the algorithm applies to it, and compares with the definition. Where this process's data is not
 * what it should be, the reason is in `complaint`. */
verify_outcome verify_call_run(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]);

/* A call like any other. */
verify_outcome verify_some_call(const collwise_algorithm *algorithm, unsigned serial, MPI_Comm comm,
                                char complaint[VERIFY_TEXT]);

/* True if the algorithm has no objection to the call. */
bool verify_call_applies(const verify_call *call, MPI_Comm comm);
/* The bytes of a message, or of one block. */
size_t verify_call_bytes(const verify_call *call);

/* The definitions, one a collective: each makes a call and is true if all came out as it should. */
typedef bool verify_definition(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]);
verify_definition verify_bcast, verify_gather, verify_gatherv, verify_scatter, verify_scatterv, verify_allgather,
    verify_allgatherv, verify_alltoall, verify_alltoallv, verify_barrier, verify_reduce, verify_allreduce,
    verify_reduce_scatter, verify_reduce_scatter_block, verify_scan, verify_exscan;

/* A call whose every argument is wrong but root and communicator, for those that a process need not give. */
collwise_call verify_blank_call(const verify_call *call, MPI_Comm comm);

/* Sizes of blocks that differ, some of them zero. */
int verify_differing_size(int ints, unsigned which);

MPI_Op verify_operation_make(verify_operation operation);
void verify_operation_free(verify_operation operation, MPI_Op *op);

/* --- Nodes that processes of one machine are taken to be on (placement.c) ----------------------------------------- */

/* The placements: as MPI says, on nodes of 1, 2, 3 and so on, by turns on nodes of about 3, and each on a node of
 * its own. */
typedef enum {
    VERIFY_AS_STARTED,
    VERIFY_UNEVEN,
    VERIFY_CYCLIC,
    VERIFY_APART,
    VERIFY_PLACEMENTS /* how many there are */
} verify_placement;
extern const char *const verify_placement_names[VERIFY_PLACEMENTS];
/* A process's node, and its socket. */
int verify_node_of(verify_placement placed, int rank, int procs);
int verify_socket_of(verify_placement placed, int rank, int procs);

/* --- Communicators (isolation.c, threads.c) ---------------------------------------------------------------------- */

/* True if the communicator and its private duplicate hold messages that nobody received. Collective. */
bool verify_has_leftovers(MPI_Comm comm);

/* The communicator of the processes from `first` up to before `end`, ranks reversed if wanted; MPI_COMM_NULL for the
 * others. */
MPI_Comm verify_processes(MPI_Comm world, int first, int end, bool reversed);

/* The tests of communicators, on some of `world_procs` processes, each reported as an algorithm of "isolation". The
 * name of a test that does not exist is NULL. */
const char *verify_isolation_name(int test);
void verify_isolation(int test, int world_procs);

/* One of them: two threads at once, each with a communicator of its own. */
typedef verify_outcome verify_isolation_test(const collwise_algorithm *algorithm, MPI_Comm world,
                                             char complaint[VERIFY_TEXT]);
verify_isolation_test verify_two_threads;

/* --- Sequences of calls (sequence.c) ------------------------------------------------------------------------------ */

typedef struct {
    uint64_t seed;
    unsigned calls;                     /* in all; 0: there is no sequence */
    const char *directory;              /* for the files by which the program is watched */
    const char *collective, *algorithm; /* the only ones to be called; NULL: all */
    int is_interposed;                  /* whether MPI's functions are called, which libcollwise replaces */
} verify_sequence_options;

/* Sets what libcollwise reads in MPI_Init, which comes next. */
void verify_sequence_set_up(const verify_sequence_options *options);
/* Makes the calls. Whatever is wrong ends the program. */
void verify_sequence_run(const verify_sequence_options *options);

/* Random numbers that depend on the seed, on their use, and on a number, such as that of the call. */
typedef struct {
    uint64_t state;
} verify_draws;

typedef enum {
    VERIFY_OF_SETTINGS,
    VERIFY_OF_RULES,
    VERIFY_OF_CALLS,
    VERIFY_OF_BURSTS,
    VERIFY_OF_COMMUNICATORS,
    VERIFY_OF_LAGGARDS,
    VERIFY_OF_DELAYS,
    VERIFY_OF_STARTS
} verify_purpose;

verify_draws verify_draws_of(uint64_t seed, verify_purpose purpose, uint64_t of);
/* A number from 0 up to before `below`. It takes one step of the draws, whatever the bound. */
unsigned verify_draw(verify_draws *from, unsigned below);

/* A communicator of the calling process (families.c). The processes that a split has left out have one of their own. */
typedef struct {
    MPI_Comm comm;
    int rank, procs;
    int per_node; /* the most processes on a node */
    int *world;   /* ranks of its processes in MPI_COMM_WORLD */
    char name[VERIFY_TEXT / 4];
} verify_family;

verify_family verify_family_of(MPI_Comm comm, const char *name);
/* Makes one of another, in a way that is drawn, and returns how its processes are to be placed. Collective. */
verify_placement verify_family_derive(verify_family *made, const verify_family *of, uint64_t salt, verify_draws *draws);
/* A collective call. */
void verify_family_free(verify_family *family);

/* The rules of libcollwise (rules.c): those of a seed say which algorithm runs, NULL for MPI's own. */
typedef struct {
    const collwise_algorithm *algorithm;
    collwise_parameters with;
} verify_rule;

/* The rule for `procs` processes, of which at most `per_node` share a node. */
verify_rule verify_rule_for(const verify_sequence_options *options, collwise_collective kind, int procs, int per_node,
                            size_t message_bytes);
/* All rules, as libcollwise reads them. */
void verify_write_rules(const verify_sequence_options *options, const char *path);

/* The board, on which processes note where they are (board.c): a file of one entry for each, which all of them and
 * who started them can read at any time, also when the program hangs or has crashed. */
enum { VERIFY_ENTRY_TEXT = 484 };

typedef enum { VERIFY_RUNNING, VERIFY_FINISHED, VERIFY_FAILED, VERIFY_STUCK } verify_state;

typedef struct {
    _Atomic int64_t entered;         /* the number of the last call that it has entered */
    int64_t calls, skipped, by_ours; /* counted by the first process of each communicator */
    _Atomic int64_t state;           /* verify_state */
    char call[VERIFY_ENTRY_TEXT];    /* the call that it is in */
    char complaint[1024 - 5 * sizeof(int64_t) - VERIFY_ENTRY_TEXT];
} verify_entry;

/* The entries of all processes, by their ranks in the world. */
verify_entry *verify_board_open(const char *directory);
/* Notes the call that the calling process is in. It gets a limited time from here on. */
void verify_board_note(verify_entry *own, const char *call);

#endif
