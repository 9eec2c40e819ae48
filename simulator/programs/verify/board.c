/* The board on which the processes of a sequence note where they are. */
#include "verify.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

/* The processor time that a process gets for one call, in which it waits by polling: far more than any takes, also on a
 * busy machine, where polling gets little of the time that passes. MPICH flushes without giving way to a process that
 * has to answer, so that hundreds of small segments through windows take seconds where processes share a core. */
#ifdef MPICH
enum { MAX_PROCESSOR_SECONDS = 15 };
#else
enum { MAX_PROCESSOR_SECONDS = 6 };
#endif

/* For the signal handler. Simulated processes share it: there, one entry stands for all. */
static verify_entry *volatile watched;

static void end_stuck(int signal_number) {
    (void)signal_number;
    watched->state = VERIFY_STUCK;
    _exit(1);
}

verify_entry *verify_board_open(const char *directory) {
    char path[4096];
    int procs, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/board", directory);
    size_t bytes = (size_t)procs * sizeof(verify_entry);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    void *memory = file < 0 || ftruncate(file, (off_t)bytes) != 0
                       ? MAP_FAILED
                       : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        perror("verify: board");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    close(file);
    verify_entry *entries = memory;
    watched = &entries[rank];
    signal(SIGPROF, end_stuck);
    return entries;
}

void verify_board_note(verify_entry *own, const char *call) {
    snprintf(own->call, VERIFY_ENTRY_TEXT, "%s", call);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = MAX_PROCESSOR_SECONDS}, NULL);
}
