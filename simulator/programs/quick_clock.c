/* Preloaded into the simulator: CPU clocks that cost nothing to read.
 *
 * SMPI reads a process's CPU time twice in every MPI call, to charge computation to the simulated clock, and does so
 * also when told not to charge any. The two system calls are a fifth of a sweep. We run with
 * smpi/simulate-computation:no, where nobody uses the value. Other clocks stay as they are. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int is_cpu_clock = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID || clock < 0;
    if (is_cpu_clock) {
        *now = (struct timespec){0, 0};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, now);
}
