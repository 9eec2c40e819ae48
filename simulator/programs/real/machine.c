/* Waiting, memory and ends of programs on hardware. */
#include "timing.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The memory is written to: pages never touched are all the same physical page, which is faster to send. */
void *program_allocate_payload(size_t bytes) {
    void *memory = malloc(bytes + 1);
    return memory == NULL ? NULL : memset(memory, 1, bytes + 1);
}

void program_free_payload(void *memory) { free(memory); }

void program_busy_wait(double seconds) {
    double until = MPI_Wtime() + seconds;
    while (MPI_Wtime() < until) {
    }
}

void program_busy_wait_and_yield(double seconds) {
    double until = MPI_Wtime() + seconds;
    while (MPI_Wtime() < until) {
        sched_yield();
    }
}

void *program_make_barrier(int procs) { return (void)procs, NULL; }

void program_simulated_barrier(const common_start *start) { (void)start; }

void program_abort(void) { MPI_Abort(MPI_COMM_WORLD, 2); }
