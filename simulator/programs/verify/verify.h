/* What the parts of verify share: data with a known layout in memory, one call of a collective, and a tally. */
#ifndef COLLWISE_VERIFY_H
#define COLLWISE_VERIFY_H

#include "internal.h"

#include <stdbool.h>

/* A run of a datatype's bytes: they lie together in memory and follow one another in the signature. */
typedef struct {
    ptrdiff_t offset;
    size_t bytes;
} verify_run;

/* The ways to describe the data. Those of one family have equal signatures for the same message. */
typedef enum {
    VERIFY_INT,
    VERIFY_BYTE,
    VERIFY_DOUBLE_INT,   /* a named type with a hole at its end */
    VERIFY_PAIR,         /* a struct of a double and an int */
    VERIFY_SWAPPED_PAIR, /* the same signature, the int first in memory */
    VERIFY_CONTIGUOUS,
    VERIFY_VECTOR,
    VERIFY_INDEXED,  /* no holes, but out of memory order */
    VERIFY_HINDEXED, /* holes, and out of memory order */
    VERIFY_NEGATIVE, /* a struct resized to a negative lower bound */
    VERIFY_NESTED,   /* contiguous of a duplicate of a vector */
    VERIFY_WHOLE     /* one strided type for the whole message */
} verify_kind;

/* A message as one process describes it: `count` elements of `type` for MPI; for the checks, `repeats` copies of
 * the runs, `stride` bytes apart. `extent` is what the whole message takes in memory. */
typedef struct {
    verify_kind kind;
    MPI_Datatype type;
    int count;
    const verify_run *runs;
    size_t run_count, repeats;
    ptrdiff_t stride, extent;
} verify_layout;

/* The layout of about `ints` ints (pairs, bytes): kinds that need six make it a multiple of six. */
verify_layout verify_layout_make(verify_kind kind, int ints);
void verify_layout_free(verify_layout *layout);
const char *verify_kind_name(verify_kind kind);
/* The bytes of the signature of a message of about `ints` ints. */
size_t verify_message_bytes(verify_kind kind, int ints);

/* Memory for `messages` messages in a row, with room before and after, all of it guard bytes. */
typedef struct {
    char *memory;
    size_t bytes;
} verify_image;

verify_image verify_image_make(const verify_layout *layout, int messages);
verify_image verify_image_copy(const verify_image *image);
void verify_image_free(verify_image *image);
/* Where the program's buffer starts in the image. */
char *verify_image_buffer(const verify_image *image);
/* Writes message `index`: byte i of the signature is a function of (serial, rank, i). */
void verify_image_write(verify_image *image, const verify_layout *layout, int index, unsigned serial, int rank);
/* The first byte that differs, counted from the buffer's start; false if there is none. */
bool verify_image_differs(const verify_image *expected, const verify_image *found, ptrdiff_t *where);

enum { VERIFY_MOST_CASES = 4096, VERIFY_TEXT = 320 };

/* What this process knows of the cases so far. All processes count the same cases, those that take no part too. */
typedef struct {
    int cases;
    int failed[VERIFY_MOST_CASES]; /* 0 or 1 */
    int first_failed;              /* a case, or VERIFY_MOST_CASES */
    char first_failure[VERIFY_TEXT];
} verify_tally;

void verify_start(verify_tally *tally);
/* Counts one case, described by `what`; `complaint` is NULL if this process found it right. */
void verify_count(verify_tally *tally, const char *what, const char *complaint);
/* Counts cases that other processes run. */
void verify_skip(verify_tally *tally, int cases);
/* Collective over the world: one JSON line from its first process, of what all processes found. */
void verify_report(const verify_tally *tally, const char *collective, const char *algorithm);
/* A JSON line from the first process of the world: where the program is. */
void verify_say_started(const char *collective, const char *algorithm, int procs, const char *what);

/* One call of a collective. The root describes its data as `at_root`, the others as `elsewhere`. */
typedef struct {
    const collwise_algorithm *algorithm;
    unsigned serial;
    int root, ints;
    verify_kind at_root, elsewhere;
    bool in_place;
    collwise_parameters with;
} verify_call;

/* Makes the call and compares with the definition. False, with the reason in `complaint`, if this process's data is
 * not what it should be. */
bool verify_call_is_right(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]);

/* Whether the communicator and its private duplicate hold messages that nobody received. Collective. */
bool verify_has_leftovers(MPI_Comm comm);

/* The communicator of the first `procs` processes, ranks reversed if wanted; MPI_COMM_NULL for the others. */
MPI_Comm verify_first_processes(int procs, bool reversed);

/* The tests of communicators, on the first `procs` processes, each reported as an algorithm of "isolation". The name
 * of a test that does not exist is NULL. */
const char *verify_isolation_name(int test);
void verify_isolation(int test, int procs);

#endif
