/* Shared declarations of the interposing library.
 *
 * Under SMPI all simulated processes share this library, and MPI_COMM_WORLD is one object for all of them. The settings
 * and the states of communicators are therefore the same for every process and do not change once they are made. What
 * differs between processes, the call counts, is an attribute of MPI_COMM_SELF. */
#ifndef COLLWISE_INTERPOSE_H
#define COLLWISE_INTERPOSE_H

#include "collwise.h"
#include "decision.h"

#include <stdatomic.h>
#include <stddef.h>

/* --- Settings (settings.c) --------------------------------------------------------------------------------------- */

/* The reasons for counting calls. */
enum { COUNT_FOR_REPORT = 1, COUNT_FOR_LOAD_MARKER = 2 };

/* The user's settings; shared by all processes of a simulation. */
typedef struct {
    decision_table *table; /* NULL: MPI's own algorithms everywhere */
    int counting;          /* COUNT_FOR_* bits; 0: calls are not counted */
    unsigned collectives;  /* bit k is set if some rule of collective k names an algorithm of ours */
} interpose_settings;

/* The settings; NULL before MPI_Init, after MPI_Finalize, and where the user asked for nothing. */
extern _Atomic(const interpose_settings *) interpose_published;

/* Reads COLLWISE_TABLE, COLLWISE_ALGORITHMS, COLLWISE_REPORT, COLLWISE_LOAD_MARKER, COLLWISE_MESSAGE_BUFFER and
 * COLLWISE_INTEGER_BUFFER on the first process, shares them with all others, and publishes the settings. Every process
 * calls it within MPI_Init. */
void interpose_start(void);
/* Writes the report and withdraws the settings. Every process calls it within MPI_Finalize. */
void interpose_stop(void);

/* Whether the environment of this process asks for anything. */
int interpose_is_requested(void);
/* The text of an environment variable; NULL if it is not set or empty. */
const char *interpose_variable(const char *name);

/* --- Signatures (generated from the catalogue by generate_wrappers.py) ------------------------------------------- */

/* The arguments that give a buffer's length. A buffer without a length is one that the collective does not have, or the
 * send buffer of a reduction, which is as long as the receive buffer. */
typedef enum {
    INTERPOSE_LENGTH_NONE,
    INTERPOSE_LENGTH_COUNT,
    INTERPOSE_LENGTH_COUNTS,       /* one count for each process */
    INTERPOSE_LENGTH_DISPLACEMENTS /* one count and one displacement for each process */
} interpose_length;

typedef struct {
    interpose_length length;
    int root_only; /* significant at the root only */
    int in_place;  /* may be MPI_IN_PLACE; where there is a root, at the root only */
} interpose_buffer;

/* The arguments that give a call's message bytes; size_from in catalogue.toml explains them. */
typedef enum {
    INTERPOSE_SIZE_UNKNOWN,
    INTERPOSE_SIZE_RECEIVE,
    INTERPOSE_SIZE_BLOCK,
    INTERPOSE_SIZE_SUM,
    INTERPOSE_SIZE_MEAN
} interpose_size;

typedef struct {
    const char *function; /* "MPI_Bcast" */
    int has_root, has_op;
    interpose_buffer send, receive;
    interpose_size size_from;
} interpose_signature;

extern const interpose_signature interpose_signatures[COLLWISE_COLLECTIVES];

/* --- Calls (interpose.c) ----------------------------------------------------------------------------------------- */

/* Runs the call and returns 1 if one of our algorithms applies; returns 0 if the call is for PMPI. */
int interpose_run(collwise_collective kind, const collwise_call *call);

/* --- Communicators (state.c) ------------------------------------------------------------------------------------- */

/* The state that all calls on a communicator share. */
typedef struct {
    int is_inter, procs;
    const decision_row *rows[COLLWISE_COLLECTIVES]; /* NULL: no rule */
} interpose_state;

/* The state, an attribute of the communicator. The first call on a communicator makes it and may be collective. NULL
 * for MPI_COMM_NULL or if memory runs out. */
const interpose_state *interpose_find_state(const interpose_settings *settings, MPI_Comm comm);

/* Increases whenever a state is freed. */
extern atomic_uint interpose_generation;

/* An attribute key, made on first use and stored in *key for all. */
int interpose_key(atomic_int *key, MPI_Comm_delete_attr_function *free_value);

/* --- Counts (report.c) ------------------------------------------------------------------------------------------- */

enum { INTERPOSE_NO_SIZE = 65 }; /* in place of the bit length of a call's message bytes */

void interpose_counts_make(void);
void interpose_counts_free(void);

/* Counts a call by the algorithm that ran or, if that is NULL, by the reason why MPI's own did. */
void interpose_count(const interpose_settings *settings, collwise_collective kind, const char *algorithm,
                     const char *reason, int size_bits, MPI_Comm comm);

/* Adds up the counts of all processes (a collective call on MPI_COMM_WORLD). The first process prints them: to standard
 * error if `target` is "1", else to the file of that name. */
void interpose_print_report(const char *target);

/* Writes the load marker, the file by which `collwise run` verifies that programs call this library. `calls` is
 * negative while only MPI_Init has been called. */
void interpose_write_load_marker(const char *path, long long calls);
/* The number of collectives that this process has called. */
long long interpose_calls(void);

/* --- Load check (load_check.c) ----------------------------------------------------------------------------------- */

/* Records that the program called this library's MPI_Init. */
void interpose_note_init(void);

/* --- Arguments (arguments.c) ------------------------------------------------------------------------------------- */

/* The size of a datatype in bytes; negative if MPI cannot express it. */
MPI_Count interpose_query_element_bytes(MPI_Datatype type);

/* Sets *bytes to the call's message bytes as the catalogue defines them, 0 where not all processes know them. Returns 0
 * if the arguments that it reads are invalid. For intracommunicators of `procs` processes. */
int interpose_message_bytes(collwise_collective kind, const collwise_call *call, int procs, uint64_t *bytes);

/* Whether this process sees nothing in the arguments for which MPI would raise an error. */
int interpose_arguments_are_valid(collwise_collective kind, const collwise_call *call, int procs);

#endif
