/* Functions that the programs that measure time share: simulated time or not, a common start, memory, input files. */
#ifndef COLLWISE_TIMING_H
#define COLLWISE_TIMING_H

#include "world.h"

#include <mpi.h>
#include <stddef.h>

/* Memory whose content is never read: in simulation all processes share it. NULL if there is none. */
void *program_allocate_payload(size_t bytes);
void program_free_payload(void *memory);

/* Ends the program with exit code 2; says why before that. */
void program_abort(void);
void program_fail(const char *program, const char *what, const char *detail);

/* Keep the process busy without communication; the second lets other processes of this core run meanwhile. */
void program_busy_wait(double seconds);
void program_busy_wait_and_yield(double seconds);

/* The whole file, on every process (a collective call); NULL if it cannot be read. Freed with free(). */
char *program_read_text(const char *path);

/* Every process gets the maximum of each value, in ceil(log2 P) rounds. At most two values. */
void program_allreduce_max(double *values, int count, MPI_Comm comm);

/* The communicator of the first `procs` processes, MPI_COMM_NULL on the others. It is cached until it is asked for with
 * another number of processes; the cache begins as {MPI_COMM_NULL, 0}. A collective call. */
typedef struct {
    MPI_Comm comm;
    int procs;
} cached_communicator;

MPI_Comm program_communicator_of_first(cached_communicator *cached, int procs);

/* Simulation only: a barrier of the simulator, which sends no messages, and the instant at which all processes
 * start. */
typedef struct {
    void *barrier;
    double seconds;
} common_start;

common_start program_common_start(void);
void *program_make_barrier(int procs);
void program_simulated_barrier(const common_start *start);
/* Waits for all processes, then for the instant. */
void program_start_together(common_start *start);
/* Sets the instant of the next start, given when what started last ended: the same value on all processes. */
void schedule_next_start(common_start *start, double end_seconds);

#endif
