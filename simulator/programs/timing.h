/* What the programs that keep time share: whether time is simulated, a common start, memory, and the file they read. */
#ifndef COLLWISE_TIMING_H
#define COLLWISE_TIMING_H

#include <mpi.h>
#include <stddef.h>

#ifdef SMPI_SHARED_MALLOC
#define SIMULATED 1
#else
#define SIMULATED 0
#endif

/* Memory whose content nobody looks at: in simulation all processes share it. NULL if there is none. */
void *allocate_payload(size_t bytes);
void free_payload(void *memory);

/* Ends the program with exit code 2. */
void give_up(void);

/* Work that is no communication. */
void spend(double seconds);

/* The whole file, on every process (a collective call); NULL when it cannot be read. Freed with free(). */
char *read_text(const char *path);

/* Every process gets the largest of each value, in ceil(log2 P) rounds. At most two values. */
void largest(double *values, int count, MPI_Comm comm);

/* The communicator of the first `procs` processes, kept until another count is asked for; begins as {MPI_COMM_NULL, 0}.
 * MPI_COMM_NULL on the others. A collective call. */
typedef struct {
    MPI_Comm comm;
    int procs;
} first_processes;

MPI_Comm take_first(first_processes *kept, int procs);

/* Simulation only: where everybody meets, which sends nothing, and the instant at which all start. */
typedef struct {
    void *meeting;
    double seconds;
} common_start;

common_start common_start_make(void);
void meet(const common_start *start);
/* Meets, and waits for the instant. */
void start_together(common_start *start);
/* What started together ended at `end_seconds`, the same value everywhere. */
void ended_together(common_start *start, double end_seconds);

#endif
