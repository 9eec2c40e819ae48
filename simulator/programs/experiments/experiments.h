/* An experiment as the file describes it, and a process's part in it. */
#ifndef COLLWISE_EXPERIMENTS_H
#define COLLWISE_EXPERIMENTS_H

#include "workload.h"

enum { MOST_NAMED = 3 };

/* As in common/experiments.py; from SCATTER on, kinds on many. */
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
    int procs, ranks[MOST_NAMED];
} experiment;

typedef struct {
    int least, most;
    double relative_error;
    double *quantiles; /* quantiles[n]: of n repetitions */
} precision;

typedef struct {
    precision wanted;
    experiment *list;
    int count;
} experiment_file;

/* Cuts the text into lines. A malformed one ends the program. */
experiment_file experiment_file_parse(char *text);
void experiment_file_free(experiment_file *file);

/* Whether it runs on the ranks 0 to procs - 1, of which only the root is named. */
int is_on_many(const experiment *one);

/* The place of a rank among the processes of an experiment, or -1; of those on many, 0 is the root and 1 the others. */
int role_of(const experiment *one, int rank);

/* What a process needs for the experiment it takes part in; `role` is -1 if there is none. */
typedef struct {
    const experiment *one;
    int role;
    char *out, *in;
    MPI_Request *posted;
    const collwise_algorithm *algorithm; /* of kinds on many */
    workload work;
    MPI_Comm comm;
} part;

/* One repetition: the time that the kind asks for, and all of it until this process is done. */
typedef struct {
    double seconds, elapsed_seconds;
} lap;

/* `comm` is that of the processes, for kinds on many. */
part part_take(const experiment *one, int role, MPI_Comm comm);
void part_free(part *mine);

/* Posts what is received in a repetition, where that is not the collective's own business. */
void part_post_receives(const part *mine);
lap part_perform(const part *mine);
/* Of kinds on many, the slowest process's time counts. */
void part_agree_on(lap *own, const part *mine);

enum { TAG_DATA = 1, TAG_READY, TAG_VERDICT, TAG_RECORD };

void fail(const char *what, const char *detail);

#endif
