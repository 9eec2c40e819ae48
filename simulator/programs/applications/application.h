/* The shared parts of applications: options, modelled computation, the time within collectives, and the line of
 * results.
 *
 * An application computes a real result and compares it with a serial one, or, with --rate, models its computation:
 * data then has no values, and each process computes nothing for as long as its operations take at that rate. It calls
 * MPI's own collectives, like any program of a user. */
#ifndef COLLWISE_APPLICATION_H
#define COLLWISE_APPLICATION_H

#include "options.h"

#include <mpi.h>
#include <stddef.h>

typedef struct {
    const char *name;
    int rank, procs;
    double rate; /* operations per second of modelled computation; 0: real computation */
    int lists_calls;
    double start, seconds, in_collectives, computing, operations;
    double entered;
} application;

/* The options of every application, the last ones of a list. */
#define APPLICATION_OPTIONS(app)                                                                                       \
    {"--rate", OPTION_NUMBER, &(app).rate, 1, 1e30, NULL}, {"--calls", OPTION_INT, &(app).lists_calls, 1, 1, NULL}, {  \
        0                                                                                                              \
    }

/* Calls MPI_Init and reads the options of an application that has its name. Ends the program with exit code 2 if the
 * command line is wrong. */
void application_start(application *app, int *argc, char ***argv, const program_option *options);

/* With --calls, the first process prints each call that the application times, and the application ends without them:
 * `times` calls of the collective with that many message bytes, as the catalogue defines them. */
void application_list_call(const application *app, const char *collective, size_t message_bytes, long times);

/* All processes begin the timed part, after a barrier. */
void application_begin(application *app);
/* Before and after each collective. */
void application_enter(application *app);
void application_leave(application *app);
/* Before and after real computation of that many operations. */
void application_compute_begin(application *app);
void application_compute_end(application *app, double operations);
/* Modelled computation of that many operations, at `speed` times the rate. */
void application_model(const application *app, double operations, double speed);
/* The speed of the processor as the simulator's platform describes it, 1 where computation is modelled otherwise; 0: it
 * is not known without measuring. */
double application_host_speed(const application *app);
/* The end of the timed part. */
void application_end(application *app);

/* The first process prints a line of JSON with the times of all processes. `result` is a number that depends on all
 * results, `correct` whether they are those of a serial computation; neither is printed for modelled computation.
 * Calls MPI_Finalize and returns the exit code of the program. */
int application_finish(application *app, double result, int correct);

/* Memory of a message: of its own for a real computation, shared by all simulated processes for a modelled one. */
void *application_allocate(const application *app, size_t bytes);
void application_free(const application *app, void *memory);

/* The sum: MPI_SUM for a real computation. For a modelled one in simulation, an operation that reads no data and takes
 * as long as our algorithms' reductions do. */
MPI_Op application_sum_make(const application *app);
void application_sum_free(MPI_Op *sum);

/* A pseudo-random number from 0 to `most` - 1 that depends on two indices only. */
unsigned application_noise(unsigned i, unsigned j, unsigned most);

#endif
