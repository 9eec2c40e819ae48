/* An experiment as the file describes it, and a process's part in it. */
#ifndef COLLWISE_EXPERIMENTS_H
#define COLLWISE_EXPERIMENTS_H

#include "workload.h"

enum { MAX_NAMED = 3 };

/* As in common/experiments.py; collective kinds from SCATTER on, between two or three processes before. */
typedef enum {
    ROUNDTRIP,
    SEND,
    RECEIVE,
    SATURATION,
    PRTT,
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
    int procs, ranks[MAX_NAMED];
} experiment;

typedef struct {
    int least, most;
    double relative_error;
    double *quantiles; /* quantiles[n]: Student's t for n repetitions */
} precision;

typedef struct {
    precision wanted;
    experiment *list;
    int count;
} experiment_file;

/* Splits the text into lines. A malformed line ends the program. */
experiment_file experiment_file_parse(char *text);
void experiment_file_free(experiment_file *file);

/* Whether the experiment is a collective, on the ranks 0 to procs - 1, of which the file names only the root. */
int is_collective(const experiment *one);

/* The index of a rank among the processes of an experiment, or -1; in a collective, 0 for the root, 1 for all
 * others. */
int role_of(const experiment *one, int rank);

/* A process's part in an experiment; `role` is -1 if it has none. */
typedef struct {
    const experiment *one;
    int role;
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
part part_make(const experiment *one, int role, MPI_Comm comm);
void part_free(part *mine);

/* Posts the receives of a repetition; a collective does so itself. */
void part_post_receives(const part *mine);
repetition part_run(const part *mine);
/* In a collective kind, the slowest process's time counts. */
void part_take_slowest(repetition *own, const part *mine);

enum { TAG_DATA = 1, TAG_READY, TAG_VERDICT, TAG_RECORD };

void fail(const char *what, const char *detail);

#endif
