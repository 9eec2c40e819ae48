/* An experiment as the file describes it, and a process's part in it. */
#ifndef COLLWISE_EXPERIMENTS_H
#define COLLWISE_EXPERIMENTS_H

#include "workload.h"

/* As in common/experiments.py: kinds of pairs, then ONE_TO_TWO, then collective kinds from SCATTER on. */
typedef enum {
    ROUNDTRIP,
    SEND,
    ISEND,
    RECEIVE,
    UNEXPECTED_RECEIVE,
    SATURATION,
    PRTT,
    SENDRECV,
    EAGER_LIMIT,
    CLOCK,
    REDUCE,
    ONE_TO_TWO,
    SCATTER,
    GATHER,
    CHAIN_BCAST,
    LINEAR_BARRIER,
    KINDS /* how many there are */
} experiment_kind;

typedef struct {
    long id, round;
    experiment_kind kind;
    int message_bytes, reply_bytes;
    int count;
    double delay_seconds;
    int repetitions; /* 0: until the mean is precise enough */
    int procs;
    int *ranks; /* `procs` of them; of a collective kind the root only */
} experiment;

typedef struct {
    experiment *list;
    int count;
} experiment_file;

/* Splits the text into lines. Rank 0 prints the record of a line that is wrong, which is left out. */
experiment_file program_experiments_parse(char *text);
void program_experiments_free(experiment_file *file);

/* True if the experiment is a collective, on the ranks 0 to procs - 1. */
int program_is_collective(const experiment *one);

/* A process's part in an experiment. */
typedef struct {
    const experiment *one;
    /* -1 if it has none. The process with role 0 takes the time; in a collective that is the root, and all others have
     * role 1. */
    int role;
    int procs;        /* those that take part together: a pair, three, or all of a collective */
    const int *ranks; /* their ranks; of a collective the root's only */
    char *out, *in;
    MPI_Request *posted;
    const collwise_algorithm *algorithm; /* of a collective kind, else NULL */
    workload work;
    MPI_Comm comm;
} part;

/* One repetition: the time that the kind measures, and the whole time until this process has finished. */
typedef struct {
    double seconds, elapsed_seconds;
} repetition;

/* `comm` is the communicator of a collective kind's processes. */
part program_part_make(const experiment *one, int rank, MPI_Comm comm);
void program_part_free(part *mine);

/* The steps of a repetition: receives are posted, where the kind posts them before; the processes synchronise; the
 * experiment runs; in a collective kind, the slowest process's time counts. */
void program_part_post_receives(const part *mine);
void program_part_synchronise(const part *mine);
repetition program_part_run(const part *mine);
void program_part_take_slowest(repetition *own, const part *mine);

enum { TAG_DATA = 1, TAG_READY, TAG_VERDICT, TAG_RECORD };

#endif
