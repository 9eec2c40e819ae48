/* Waiting, memory and ends of programs in simulation, where all processes are threads of one. */
#include "timing.h"

#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#include <unistd.h>

void *program_allocate_payload(size_t bytes) { return SMPI_SHARED_MALLOC(bytes); }

void program_free_payload(void *memory) { SMPI_SHARED_FREE(memory); }

void program_busy_wait(double seconds) { sg_actor_sleep_for(seconds); }

void program_busy_wait_and_yield(double seconds) { program_busy_wait(seconds); }

void *program_make_barrier(int procs) { return sg_barrier_init((unsigned)procs); }

void program_simulated_barrier(const common_start *start) { sg_barrier_wait(start->barrier); }

/* MPI_Abort ends a simulation with exit code 0. */
void program_abort(void) { _exit(2); }
