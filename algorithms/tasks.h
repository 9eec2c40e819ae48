/* Collectives from tasks, as HAN's (Luo et al. 2020, section III): operations that are schedules of rounds (rounds.c),
 * and sequences of tasks, each of which runs one operation on every level, on successive segments (tasks.c). */
#ifndef COLLWISE_TASKS_H
#define COLLWISE_TASKS_H

#include "internal.h"

/* --- Operations: schedules of rounds (rounds.c) ------------------------------------------------------------------- */

/* An operation of several processes, seen from one of them: rounds of sends, receives and local work, as non-blocking
 * collectives are in libnbc (Hoefler et al. 2007). A round starts its actions in order; when all its messages have been
 * sent and received, the next one starts. */
typedef struct {
    struct collwise_action *actions; /* of all rounds */
    size_t count, room, next;
    collwise_requests requests; /* of the current round */
    int open;                   /* how many of them have not completed */
    int (*poll)(void *state);   /* part of the current round: returns whether it is over; NULL: none */
    void *state;
    int round; /* the current one */
    int hops;  /* how many messages come one after another before those of the first round can */
    char *scratch;
    size_t scratch_bytes;
} collwise_rounds;

/* An operation without rounds, of processes of `comm`. */
collwise_rounds collwise_rounds_make(int hops, MPI_Comm comm);
void collwise_rounds_free(collwise_rounds *of);
/* Forgets the rounds, which are over. */
void collwise_rounds_clear(collwise_rounds *of);

void collwise_add_send(collwise_rounds *to, const char *data, size_t bytes, int destination);
void collwise_add_receive(collwise_rounds *to, char *data, size_t bytes, int source);
void collwise_add_copy(collwise_rounds *to, char *data, const char *from, size_t bytes);
/* Combines what has been received with `data`, as collwise_combine_received does. */
void collwise_add_combine(collwise_rounds *to, const collwise_operation *op, char *data, char *received,
                          size_t elements, int sender_is_lower);
/* What follows belongs to the next round. */
void collwise_add_round(collwise_rounds *to);
/* Scratch memory, kept until the next call for more. */
char *collwise_rounds_scratch(collwise_rounds *of, size_t bytes);

/* A broadcast down a tree, and a reduction up one. In each round an inner process receives a segment and passes on the
 * one before. `sum` is a process's own contribution first, and the sum over its subtree in the end; a leaf's does not
 * change. */
void collwise_add_bcast(collwise_rounds *to, const collwise_tree *tree, char *data, collwise_segment first);
void collwise_add_reduce(collwise_rounds *to, const collwise_tree *tree, char *sum, collwise_segment first,
                         const collwise_operation *op);

/* MPI's own non-blocking collectives (library.c), a round each. They cannot be recorded. */
void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root);
void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root);
void collwise_start_library_bcast(collwise_requests *requests, char *data, size_t bytes, int root);
void collwise_start_library_reduce(collwise_requests *requests, char *sum, size_t elements,
                                   const collwise_operation *op, int root);

/* Starts the first round. */
void collwise_rounds_start(collwise_rounds *of);
/* Starts all rounds whose time has come, without waiting. Returns whether all operations are over. */
int collwise_rounds_test(collwise_rounds *const *list, int count);
/* Lets all operations go on, each whenever its messages arrive, until they are over. */
void collwise_rounds_wait(collwise_rounds *const *list, int count);

/* --- Sequences of tasks (tasks.c) --------------------------------------------------------------------------------- */

/* One step of a segment on its way: an operation on one level, in which the process takes part. In task t it is applied
 * to segment t - lag. The names are the paper's: i between nodes, s within a node; b broadcast, r reduction. */
typedef struct {
    const char *name; /* of two letters: "ib", "sb", "ir", "sr" */
    size_t lag;       /* steps before this one */
    MPI_Comm comm;
    int hops; /* of its rounds */
    /* Adds the rounds of the operation on a segment, number `index`. */
    void (*add)(collwise_rounds *to, void *context, collwise_part segment, size_t index);
    void *context;
    collwise_rounds rounds;
} collwise_step;

/* Runs the sequence: in task 0 the first step of segment 0, in task 1 the first step of segment 1 and the second one of
 * segment 0, and so on. The operations of a task are started in the order of `steps`, and all have to be over before
 * the next task. `last_lag` is the largest lag of all processes' steps. */
void collwise_run_steps(collwise_step *steps, int count, size_t last_lag, collwise_segment segments, MPI_Comm comm);

/* --- Observing tasks ---------------------------------------------------------------------------------------------- */

typedef struct {
    size_t index;     /* in the sequence, from 0; the same for what all processes do with the same segments */
    const char *name; /* the steps that the calling process has in it, later ones first: "sbibirsr"; "" if none */
} collwise_task;

/* What to run of a sequence, and who is told. A sequence over u segments has u + 1 tasks in a broadcast and a
 * reduction, and u + 3 in an allreduce. */
typedef struct {
    size_t first_task, end_task; /* runs tasks first_task to end_task - 1; 0 as the end: all from first_task on */
    const char *steps;           /* runs these steps only, such as "ibir"; NULL: all */
    void (*after)(void *context, const collwise_task *task); /* called after each task that is run; NULL: nothing */
    void *context;
} collwise_observer;

/* Runs an algorithm that consists of tasks, as collwise_run does. Every process gives the same tasks and steps; unless
 * these are all, the result is undefined. */
void collwise_run_tasks(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                        const collwise_observer *observer);

/* The observer of the call that is running on a private communicator, or NULL (communicator.c). */
const collwise_observer *collwise_observer_of(MPI_Comm comm);

/* --- Collectives from tasks (tasks.c) ----------------------------------------------------------------------------- */

/* The collectives between nodes: a tree, or MPI's own. */
typedef enum {
    COLLWISE_BETWEEN_CHAIN,
    COLLWISE_BETWEEN_BINARY,
    COLLWISE_BETWEEN_BINOMIAL,
    COLLWISE_BETWEEN_LIBRARY
} collwise_between;

void collwise_task_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                         collwise_parameters with);
void collwise_task_allreduce(collwise_between between, char *data, size_t elements, const collwise_operation *op,
                             MPI_Comm comm, collwise_parameters with);

#endif
