/* Measures the time of a collective operation inside any MPI program.
 *
 *     cw_session *session = cw_open(comm, NULL, NULL);
 *     cw_method method = cw_usual_method();
 *     cw_result result;
 *     if (cw_measure(session, root, call_it, &its_arguments, &method, &result) == CW_OK) ...
 *     cw_result_free(&result);
 *     cw_close(session);
 *
 * All functions that take a session are collective over its communicator unless said otherwise. Times are in seconds.
 * All state is in the session. docs/measuring.md explains the methods, and when to use which.
 *
 * The global clock is process 0's. Every other process measures the difference of its clock from that of its parent in
 * a binomial tree with process 0 as root, in ceil(log2 P) rounds. One point is the ping-pong of the shortest roundtrip
 * among several (Cristian 1989): the other clock's reading belongs to the middle of the roundtrip, plus or minus half
 * of it. Offset and drift are a linear regression over such points, as in Jones & Koenig (2013), and the lines are
 * composed along the tree, as in HCA of Hunold & Carpen-Amarie (2015). Here points are weighted by the inverse square
 * of their roundtrip, a drift that does not differ significantly from zero is taken as zero, and the last
 * CW_CLOCK_POINTS points are used: each further synchronisation adds one point, so that the points span a longer
 * time. */
#ifndef COLLWISE_MEASURING_H
#define COLLWISE_MEASURING_H

#include <mpi.h>

/* Reads a process's own clock. */
typedef double (*cw_now)(void *context);

/* The function to measure: every process of the communicator calls it as often as a repetition has calls. */
typedef void (*cw_operation)(void *context);

typedef enum {
    CW_ROOT,    /* on the root's clock, until it has left a closing barrier, whose time is included */
    CW_MAXIMUM, /* the slowest process's own time */
    CW_GLOBAL   /* on the global clock: from the first start (rounds: from the announced one) to the last end */
} cw_timing;

typedef enum {
    CW_BARRIERS, /* two dissemination barriers before each repetition */
    CW_ROUNDS    /* the root announces an instant on the global clock; repetitions with a late process are discarded */
} cw_synchronisation;

typedef enum {
    CW_OK,
    CW_BAD_METHOD,    /* cw_objection says why */
    CW_OUT_OF_MEMORY, /* on the root, for the samples */
    CW_TOO_LATE       /* more repetitions began late than the method allows */
} cw_status;

typedef struct {
    cw_timing timing;
    cw_synchronisation synchronisation;
    int warmup;                           /* untimed repetitions before */
    int calls;                            /* of a repetition, one right after the other; its time is their mean */
    int min_repetitions, max_repetitions; /* equal: a fixed number */
    double confidence;                    /* of the mean's interval */
    double relative_error;                /* reached when the interval's half-width is below this share of the mean */
    double limit_seconds;                 /* no repetition starts after this time; 0: no limit */
    double late_seconds;                  /* rounds: a start skew above this counts as late */
    double late_share;                    /* rounds: the largest share of repetitions that may be late */
    double clock_age_seconds;             /* a global clock is synchronised again after this time */
} cw_method;

/* The default method: maximum, barriers, 1 untimed, 1 call, 5 to 100 repetitions, 95 %, 2.5 %, 5 s, late by 10 us, at
 * most half, 0.5 s. */
cw_method cw_usual_method(void);

/* The error in a method, in a few words, or NULL. Not collective. */
const char *cw_objection(const cw_method *method);

/* The same on every process, except for the samples. */
typedef struct {
    cw_status status;
    double mean, median, least, greatest;
    double half_width;       /* of the mean's interval; infinite for one repetition */
    int repetitions;         /* those that count */
    int late_starts;         /* repetitions that were discarded */
    int precise;             /* whether min_repetitions and the relative error were reached */
    double barrier_seconds;  /* mean of the closing barrier alone, timed by CW_ROOT; nan otherwise */
    double clock_resolution; /* the smallest difference between readings; the largest over all processes */
    double clock_tick;       /* MPI_Wtick; the largest over all processes */
    double clock_offset;     /* the largest difference between global clocks afterwards; nan if not used */
    double clock_bound;      /* an upper bound of the true largest difference */
    double *samples;         /* root: the time of each repetition that counts, in order; NULL elsewhere */
} cw_result;

typedef struct cw_session cw_session;

/* `now` reads the clock that measures; NULL: MPI_Wtime. Returns NULL on every process if memory runs out. */
cw_session *cw_open(MPI_Comm comm, cw_now now, void *now_context);
void cw_close(cw_session *session);

/* Measures the time of one operation. Connections should be open: let at least one repetition be untimed. */
cw_status cw_measure(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                     cw_result *result);
void cw_result_free(cw_result *result);

/* Hunold & Carpen-Amarie 2018, "NREP problem". */
typedef struct {
    double relative_standard_error; /* with messages of one byte: the threshold that ends t1 */
    int first_batch, second_batch;  /* b1, and b2 if the error of the first batch is not below batch_error */
    double batch_error;
    int least; /* K */
} cw_nrep;

/* 1 %, 5 and 5, 5 %, 5. */
cw_nrep cw_usual_nrep(void);

/* t1, the sum of the operation's latencies with one byte. They are taken until their relative standard error is
 * below the threshold; negative if the method's limit in seconds was reached first. The method's repetitions and
 * relative error are not used. */
cw_status cw_nrep_seconds(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                          const cw_nrep *nrep, double *t1_seconds);

/* Measures with max(ceil(t1 / l), K) repetitions, where l is the least time of the batches. `precise` says whether all
 * of them were made within the limit in seconds, and t1 was found (a negative one makes K repetitions). */
cw_status cw_measure_nrep(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                          const cw_nrep *nrep, double t1_seconds, cw_result *result);

/* A dissemination barrier, ceil(log2 P) rounds: processes leave it with the skew of a message's time. */
void cw_barrier(const cw_session *session);

#define CW_CLOCK_POINTS 32

/* Makes the global clock, or updates it with one more point. */
void cw_clock_synchronise(cw_session *session);

/* Not collective: the process's own clock; the global clock at that reading; the global clock now; and the time since
 * the last synchronisation, infinite before the first. */
double cw_clock_own(const cw_session *session);
double cw_clock_at(const cw_session *session, double own_seconds);
double cw_clock_seconds(const cw_session *session);
double cw_clock_age(const cw_session *session);

/* Compares every process's global clock with process 0's: the largest measured difference, and its upper bound, which
 * is the difference plus half the roundtrip of its measurement. Both on every process. */
void cw_clock_check(cw_session *session, double *offset_seconds, double *bound_seconds);

#endif
