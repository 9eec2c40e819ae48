/* Barrier: nobody leaves before the last has entered. One process after the other comes late, by a clock that all
 * share: the simulator's, or that of the one machine on which all run. */
#include "verify.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4, LATE_MICROSECONDS = 1000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static bool nobody_leaves_early(const verify_call *call, int late, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank;
    double entered, left, last_entered, first_left;
    MPI_Comm_rank(comm, &rank);
    collwise_call made = verify_blank_call(call, comm);
    if (rank == late) {
        usleep(LATE_MICROSECONDS);
    }
    entered = now();
    verify_make(call, &made);
    left = now();
    MPI_Allreduce(&entered, &last_entered, 1, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Allreduce(&left, &first_left, 1, MPI_DOUBLE, MPI_MIN, comm);
    if (first_left >= last_entered) {
        return true;
    }
    snprintf(complaint, VERIFY_TEXT, "a process left the barrier %.0f us before rank %d had entered",
             1e6 * (last_entered - first_left), late);
    return false;
}

bool verify_barrier(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int procs;
    bool right = true;
    if (call->conductor != NULL) {
        collwise_call made = verify_blank_call(call, comm);
        verify_make(call, &made);
        return call->is_non_blocking || call->conductor->all_have_entered(call, complaint);
    }
    MPI_Comm_size(comm, &procs);
    for (unsigned round = 0; round < ROUNDS && right; round++) {
        right = nobody_leaves_early(call, (int)((call->serial * ROUNDS + round) % (unsigned)procs), comm, complaint);
    }
    return right;
}
