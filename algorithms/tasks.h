/* Collectives from tasks, as HAN's (Luo et al. 2020, section III): operations that are schedules of rounds (rounds.c,
 * progress.c, round_collectives.c, library.c, windows.c), and sequences of tasks, each of which runs one operation on
 * every level, on successive segments (tasks.c). */
#ifndef COLLWISE_TASKS_H
#define COLLWISE_TASKS_H

#include "internal.h"

/* --- Operations: schedules of rounds (rounds.c) ------------------------------------------------------------------- */

typedef struct collwise_action collwise_action;

/* An operation of several processes, seen from one of them: rounds of sends, receives and local work, as non-blocking
 * collectives are in libnbc (Hoefler et al. 2007). A round starts its actions in order; when all its messages have been
 * sent and received, the next one starts. */
typedef struct {
    collwise_action *actions; /* of all rounds */
    size_t count, room, next;
    collwise_requests requests; /* of the current round */
    int open;                   /* how many of them have not completed */
    int (*poll)(void *state);   /* part of the current round: returns whether it is over; NULL: none */
    void *state;
    char *scratch;
    size_t scratch_bytes;
} collwise_rounds;

/* An operation without rounds, of processes of `comm`. */
collwise_rounds collwise_rounds_make(MPI_Comm comm);
void collwise_rounds_free(collwise_rounds *of);
/* Forgets the rounds, which are over. */
void collwise_rounds_clear(collwise_rounds *of);

void collwise_add_send(collwise_rounds *to, const char *data, size_t bytes, int destination);
void collwise_add_receive(collwise_rounds *to, char *data, size_t bytes, int source);
void collwise_add_copy(collwise_rounds *to, char *data, const char *from, size_t bytes);
/* Combines what has been received with `data`, as collwise_combine_received does. */
void collwise_add_combine(collwise_rounds *to, const collwise_operation *op, char *data, char *received,
                          size_t elements, int sender_is_lower);
/* The round lasts until `poll` returns 1. */
void collwise_add_poll(collwise_rounds *to, int (*poll)(void *state), void *state);
/* Ends the round: actions that are added later belong to the next one. */
void collwise_add_round(collwise_rounds *to);
/* Scratch memory, kept until the next call for more. */
char *collwise_rounds_scratch(collwise_rounds *of, size_t bytes);

/* Starts all actions of the next round. Returns 0 if there is none. */
int collwise_rounds_next(collwise_rounds *of);

/* Starts the first round (progress.c). */
void collwise_rounds_start(collwise_rounds *of);
/* Lets all operations go on, each whenever its messages arrive, until they are over. */
void collwise_rounds_wait(collwise_rounds *const *list, int count);

/* --- Collectives as rounds (round_collectives.c) ------------------------------------------------------------------ */

/* A broadcast down a tree, and a reduction up one. In each round an inner process receives a segment and passes on the
 * one before. `sum` is a process's own contribution first, and the sum over its subtree in the end; a leaf's does not
 * change. */
void collwise_add_bcast(collwise_rounds *to, const collwise_tree *tree, char *data, collwise_segment first);
void collwise_add_reduce(collwise_rounds *to, const collwise_tree *tree, char *sum, collwise_segment first,
                         const collwise_operation *op);

/* Allreduces of the operation's communicator: recursive doubling, and a ring, for operations that commute. */
void collwise_add_doubling_allreduce(collwise_rounds *to, char *data, size_t elements, const collwise_operation *op);
void collwise_add_ring_allreduce(collwise_rounds *to, char *data, size_t elements, const collwise_operation *op);

/* A barrier: signals up a tree, signals down one, and dissemination. */
void collwise_add_signals_up(collwise_rounds *to, const collwise_tree *tree);
void collwise_add_signals_down(collwise_rounds *to, const collwise_tree *tree);
void collwise_add_dissemination(collwise_rounds *to);

/* A tree along which blocks go. The blocks of a subtree lie one after another, first those of its root. */
typedef struct {
    collwise_tree tree;
    size_t own, total; /* numbers of blocks: of the process, and of its subtree, */
    size_t *below;     /* and of each child's */
} collwise_block_tree;

/* Puts the ranks of the subtree of `tree`'s process in the order in which their blocks lie. Returns how many. */
int collwise_block_order(const collwise_tree *tree, int *ranks, MPI_Comm comm);
/* `blocks_of` has the number of blocks of each rank. */
collwise_block_tree collwise_block_tree_make(const collwise_tree *tree, const size_t *blocks_of, MPI_Comm comm);
void collwise_block_tree_free(collwise_block_tree *tree);
/* `blocks` are those of the subtree. */
void collwise_add_gather(collwise_rounds *to, const collwise_block_tree *tree, char *blocks, size_t block_bytes);
void collwise_add_scatter(collwise_rounds *to, const collwise_block_tree *tree, char *blocks, size_t block_bytes);

/* Exchanges between all, of blocks whose offsets in bytes are given: an allgather around a ring; Bruck's, in which
 * process r's blocks are in the order r, r + 1, ...; and a pairwise alltoall, in which a process's blocks for and from
 * the same process have the same offsets. */
void collwise_add_ring_allgather(collwise_rounds *to, char *all, const size_t *offsets);
void collwise_add_bruck_allgather(collwise_rounds *to, char *all, const size_t *offsets);
void collwise_add_pairwise(collwise_rounds *to, const char *send, char *receive, const size_t *offsets);

/* --- MPI's own collectives as rounds (library.c) ------------------------------------------------------------------ */

/* True if MPI's own can be used; otherwise the algorithms use a binomial tree, or what is nearest to it. */
int collwise_has_library(void);

/* A round each, of MPI's non-blocking collectives. They cannot be recorded. Of the lists of counts and displacements,
 * in bytes, those at the root count, and they are kept until the operation is over. */
void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root);
void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root);
void collwise_add_library_gather(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                 int root);
void collwise_add_library_scatter(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                  int root);
void collwise_add_library_allgather(collwise_rounds *to, char *all, const int *counts, const int *displacements);
void collwise_add_library_alltoall(collwise_rounds *to, const char *send, char *receive, const int *counts,
                                   const int *displacements);
void collwise_add_library_barrier(collwise_rounds *to);

struct collwise_action {
    enum {
        COLLWISE_SEND,
        COLLWISE_RECEIVE,
        COLLWISE_COPY,
        COLLWISE_COMBINE,
        COLLWISE_POLL,
        COLLWISE_CALL,
        COLLWISE_NEXT_ROUND
    } kind;
    int peer; /* or the root; of COLLWISE_COMBINE: whether the sender has the lower rank */
    char *data;
    const char *from;
    char *received;
    size_t size; /* in elements where there is an operation, else in bytes */
    const collwise_operation *op;
    int (*poll)(void *state);
    void *state;
    void (*call)(collwise_requests *requests, const collwise_action *action);
    const int *counts, *displacements;
};
void collwise_add_action(collwise_rounds *to, collwise_action action);

/* --- Memory of a node as rounds (windows.c) ----------------------------------------------------------------------- */

/* Memory that the processes of a node share, or that they read by MPI_Get (windows.h). */
typedef struct collwise_window collwise_window;

/* The window of a node's processes, made on first use by all processes, and kept with the hierarchy of `comm`; NULL
 * where the node has one process. */
collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm);

/* True if elements of that size fit. */
int collwise_window_takes(size_t element_bytes);

/* A transfer under way, of one chunk after another. */
typedef struct {
    collwise_window *window;
    int root;
    char *data;
    size_t unit, count, chunk, done; /* in units: in all, at a time, and so far */
    int next;                        /* the process that the root has to look at next for the current chunk */
    const collwise_operation *op;
} collwise_transfer;

void collwise_add_window_bcast(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                               char *data, size_t bytes);
/* Reduces to the root as collwise_add_reduce does. At other processes `sum` is their contribution, which stays. */
void collwise_add_window_reduce(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                                char *sum, size_t elements, const collwise_operation *op);

/* --- Sequences of tasks (tasks.c) --------------------------------------------------------------------------------- */

/* One step of a segment on its way: an operation on one level, in which the process takes part. In task t it is applied
 * to segment t - lag. The names are the paper's: i between nodes, s within a node; b broadcast, r reduction; and after
 * them: g gather, s scatter, a all processes to all. With three levels n is between the sockets of a node, and s within
 * a socket. */
typedef struct {
    const char *name; /* of two letters: "ib", "sb", "ir", "sr", "ig", ... */
    size_t lag;       /* steps before this one */
    MPI_Comm comm;
    /* Adds the rounds of the operation on a segment, number `index`. */
    void (*add)(collwise_rounds *to, void *context, collwise_part segment, size_t index);
    void *context;
    collwise_rounds rounds;
} collwise_step;

/* The steps of a process. The last steps of all processes follow the first by `last_lag` tasks. */
typedef struct {
    collwise_step *list;
    int count, room;
    size_t last_lag;
} collwise_steps;

/* Adds a step; its other fields are to be set. */
collwise_step *collwise_add_step(collwise_steps *to, const char *name, size_t lag, MPI_Comm comm);

/* Runs the sequence: in task 0 the first step of segment 0, in task 1 the first step of segment 1 and the second one of
 * segment 0, and so on. The operations of a task are started in the order of the list, and all have to be over before
 * the next task. Frees the list. */
void collwise_run_steps(collwise_steps *steps, collwise_segment segments, MPI_Comm comm);

/* --- Observing tasks ---------------------------------------------------------------------------------------------- */

typedef struct {
    size_t index;     /* in the sequence, from 0; the same for what all processes do with the same segments */
    const char *name; /* the steps that the calling process has in it, later ones first: "sbibirsr"; "" if none */
} collwise_task;

/* The tasks and steps of a sequence that are run, and a function that is called after each task. A sequence over u
 * segments has u + 1 tasks in a broadcast and a reduction, and u + 3 in an allreduce. */
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

/* --- Collectives from tasks (task_trees.c, task_blocks.c) --------------------------------------------------------- */

/* The collectives between nodes: along a tree, around a ring, by doubling, pairwise, or MPI's own. */
typedef enum {
    COLLWISE_BETWEEN_CHAIN,
    COLLWISE_BETWEEN_BINARY,
    COLLWISE_BETWEEN_BINOMIAL,
    COLLWISE_BETWEEN_RING,
    COLLWISE_BETWEEN_DOUBLING,
    COLLWISE_BETWEEN_PAIRWISE,
    COLLWISE_BETWEEN_LIBRARY
} collwise_between;

/* The tree between nodes. In-order trees are those of which subtrees are consecutive ranks, as operations that do not
 * commute need. */
collwise_topology collwise_between_topology(collwise_between kind, int in_order);

void collwise_task_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                         collwise_parameters with);
void collwise_task_reduce(collwise_between between, const char *data, char *result, size_t elements,
                          const collwise_operation *op, int root, MPI_Comm comm, collwise_parameters with);
void collwise_task_allreduce(collwise_between between, char *data, size_t elements, const collwise_operation *op,
                             MPI_Comm comm, collwise_parameters with);
void collwise_task_barrier(collwise_between between, MPI_Comm comm, collwise_parameters with);

/* The same with `with.leaders` processes of each node, or fewer where a node has fewer. */
void collwise_multi_leader_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                                 collwise_parameters with);
void collwise_multi_leader_allreduce(collwise_between between, char *data, size_t elements,
                                     const collwise_operation *op, MPI_Comm comm, collwise_parameters with);

void collwise_task_gather(collwise_between between, const char *mine, char *all, size_t block_bytes, int root,
                          MPI_Comm comm, collwise_parameters with);
void collwise_task_scatter(collwise_between between, const char *all, char *mine, size_t block_bytes, int root,
                           MPI_Comm comm, collwise_parameters with);
void collwise_task_allgather(collwise_between between, char *all, size_t block_bytes, MPI_Comm comm,
                             collwise_parameters with);
void collwise_task_alltoall(collwise_between between, const char *send, char *receive, size_t block_bytes,
                            MPI_Comm comm, collwise_parameters with);

#endif
