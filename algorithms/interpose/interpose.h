/* What the files of the interposing library share.
 *
 * Under SMPI all simulated processes share this library, and MPI_COMM_WORLD is one object to them all. What hangs
 * there, the settings and the states of communicators, is the same for every process and does not change once made;
 * what differs from process to process, the counts, hangs on MPI_COMM_SELF. */
#ifndef COLLWISE_INTERPOSE_H
#define COLLWISE_INTERPOSE_H

#include "collwise.h"
#include "decision.h"

#include <stdatomic.h>
#include <stddef.h>

/* What calls are watched for. */
enum { WATCH_REPORT = 1, WATCH_PROOF = 2 };

/* What the user asked for; one for all processes of a simulation. */
typedef struct {
    decision_table *table; /* NULL: MPI's own everywhere */
    int watch;
    unsigned kinds; /* a bit for each collective for which it is not always MPI's own */
} interpose_settings;

/* The settings; NULL before MPI_Init, after MPI_Finalize, and where nothing was asked for. */
extern _Atomic(const interpose_settings *) interpose_published;

/* Reads COLLWISE_TABLE, COLLWISE_ALGORITHMS, COLLWISE_REPORT and COLLWISE_PROOF and publishes what they say. Called by
 * all processes within MPI_Init: those of the first process count for all. */
void interpose_set_up(void);
/* Ends that, with the report. Called within MPI_Finalize. */
void interpose_wind_up(void);

/* Whether the environment of this process asks for anything. */
int interpose_is_asked_for(void);
/* The text of a variable; NULL if it is not set or empty. */
const char *interpose_variable(const char *name);

/* --- Communicators (state.c) ------------------------------------------------------------------------------------- */

/* What holds for all calls on a communicator. */
typedef struct {
    int is_inter, procs;
    const decision_row *rows[COLLWISE_COLLECTIVES]; /* NULL: MPI's own for every size */
} interpose_state;

/* Kept as an attribute, made on first use, which may be a collective call. NULL if there can be none. */
const interpose_state *interpose_find_state(const interpose_settings *settings, MPI_Comm comm);

/* Goes up whenever a state is freed. */
extern atomic_uint interpose_generation;

/* --- Counts (report.c) ------------------------------------------------------------------------------------------- */

enum { INTERPOSE_NO_SIZE = 65 }; /* instead of the bit length of a call's message bytes */

void interpose_counts_make(void);
void interpose_counts_free(void);

/* Counts a call: which algorithm ran, or (NULL) why MPI's own did. */
void interpose_count(const interpose_settings *settings, collwise_collective kind, const char *algorithm,
                     const char *reason, int size_bits, MPI_Comm comm);

/* Adds up the counts of all processes (a collective call on MPI_COMM_WORLD) and prints them from its first one: to
 * standard error for "1", else to the file of that name. */
void interpose_print_report(const char *where);

/* The sign of life for those who wait for one; `calls` below 0: MPI_Init only. */
void interpose_write_proof(const char *path, long long calls);
/* How many collectives this process has called. */
long long interpose_calls(void);

/* --- Being called (calling.c) ------------------------------------------------------------------------------------ */

/* Remembers that MPI_Init came through this library. Without that, a process that was asked for it ends in an error. */
void interpose_note_init(void);

/* --- Arguments (arguments.c) ------------------------------------------------------------------------------------- */

/* The bytes of one element; below 0 for more than MPI can say. */
MPI_Count interpose_ask_element_bytes(MPI_Datatype type);

#ifdef SMPI_SHARED_MALLOC

static inline MPI_Count interpose_element_bytes(MPI_Datatype type) { return interpose_ask_element_bytes(type); }

#else

/* The last named datatype of this thread. Those are never freed, so their handles never come to mean another one. */
typedef struct {
    int known;
    MPI_Datatype type;
    MPI_Count bytes;
} interpose_known_type;

extern _Thread_local __attribute__((tls_model("initial-exec"), visibility("hidden")))
interpose_known_type interpose_last_type;

static inline MPI_Count interpose_element_bytes(MPI_Datatype type) {
    return interpose_last_type.known && interpose_last_type.type == type ? interpose_last_type.bytes
                                                                         : interpose_ask_element_bytes(type);
}

#endif

/* The message bytes of a call, as the catalogue defines them for the collective; 0 where not all processes know them.
 * Returns 0 if arguments that it reads are for MPI to judge. Called on an intracommunicator of `procs` processes. */
int interpose_message_bytes(collwise_collective kind, const collwise_call *call, int procs, uint64_t *bytes);

/* Whether nothing about the arguments makes MPI raise an error, as far as can be seen. */
int interpose_arguments_hold(collwise_collective kind, const collwise_call *call, int procs);

/* --- Everything else --------------------------------------------------------------------------------------------- */

/* An attribute key, made on first use and kept in *key for all. */
int interpose_key(atomic_int *key, MPI_Comm_delete_attr_function *free_value);

#endif
