/* Whether programs really call this library: where it was asked for and is not the one called, the process ends in an
 * error. What this cannot see, such as an MPI linked statically, `collwise run` does (COLLWISE_PROOF). */
#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int init_came_through;

void interpose_note_init(void) { atomic_store(&init_came_through, 1); }

static void fail(const char *function, const char *whose) {
    fprintf(stderr,
            "collwise: libcollwise was asked for but is not what this program calls: %s is that of %s; preload "
            "libcollwise.so ahead of every other MPI library (docs/interposing.md)\n",
            function, whose);
    fflush(NULL);
    _exit(1);
}

/* The file that defines what programs get under this name. */
static const char *owner_of(const char *function) {
    Dl_info info;
    void *found = dlsym(RTLD_DEFAULT, function);
    return found != NULL && dladdr(found, &info) != 0 ? info.dli_fname : "another library";
}

#ifdef SMPI_SHARED_MALLOC

/* SimGrid 3.32 loads programs such that they look among their own libraries first, SimGrid's, and past what is
 * preloaded. Without that flag, what is preloaded comes first there as everywhere else. */
void *dlopen(const char *file, int mode) {
    void *next = dlsym(RTLD_NEXT, "dlopen");
    void *(*open)(const char *, int);
    memcpy(&open, &next, sizeof open);
    return open(file, mode & ~RTLD_DEEPBIND);
}

static int has_run_mpi(void) { return strcmp(program_invocation_short_name, "smpimain") == 0; }

#else

static int has_run_mpi(void) {
    int initialised;
    PMPI_Initialized(&initialised);
    return initialised;
}

/* The names are looked up as a program's are: the first library that has one wins. */
__attribute__((constructor)) static void check_names(void) {
    static const char *const names[] = {
        "MPI_Init",
        "MPI_Init_thread",
        "MPI_Finalize",
        "MPI_Bcast",
        "MPI_Gather",
        "MPI_Gatherv",
        "MPI_Scatter",
        "MPI_Scatterv",
        "MPI_Allgather",
        "MPI_Allgatherv",
        "MPI_Alltoall",
        "MPI_Alltoallv",
        "MPI_Barrier",
        "MPI_Reduce",
        "MPI_Allreduce",
        "MPI_Reduce_scatter",
        "MPI_Scan",
        "MPI_Exscan",
        "MPI_Reduce_scatter_block",
    };
    Dl_info own;
    if (!interpose_is_asked_for() || dladdr((void *)&init_came_through, &own) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(owner_of(names[i]), own.dli_fname) != 0) {
            fail(names[i], owner_of(names[i]));
        }
    }
}

#endif

__attribute__((destructor)) static void check_calls(void) {
    if (!atomic_load(&init_came_through) && interpose_is_asked_for() && has_run_mpi()) {
        fail("the MPI_Init that it called", owner_of("MPI_Init"));
    }
}
