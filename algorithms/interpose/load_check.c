/* Verifies that programs call this library: if it was asked for and another library is called, the process ends with an
 * error. Cases that cannot be seen from here, such as a statically linked MPI, are found by `collwise program run`,
 * which looks for the load marker. */
#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int init_was_called;

void interpose_note_init(void) { atomic_store(&init_was_called, 1); }

static void fail(const char *function, const char *owner) {
    fprintf(stderr,
            "collwise: libcollwise was asked for but is not what this program calls: %s is that of %s; preload "
            "libcollwise.so ahead of every other MPI library (docs/interposing.md)\n",
            function, owner);
    fflush(NULL);
    _exit(1);
}

/* The file of the library whose function of this name programs call. */
static const char *owner_of(const char *function) {
    Dl_info info;
    void *found = dlsym(RTLD_DEFAULT, function);
    return found != NULL && dladdr(found, &info) != 0 ? info.dli_fname : "another library";
}

#ifdef SMPI_SHARED_MALLOC

/* SimGrid 3.32 loads programs with RTLD_DEEPBIND, so that a program's symbols are resolved among its own libraries,
 * such as SimGrid's, before preloaded ones. Without that flag preloaded libraries come first, as everywhere else. */
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

static void check_name(const char *function, const Dl_info *own) {
    if (strcmp(owner_of(function), own->dli_fname) != 0) {
        fail(function, owner_of(function));
    }
}

/* Names are looked up as a program's symbols are: the first library that defines one wins. */
__attribute__((constructor)) static void check_names(void) {
    Dl_info own;
    if (!interpose_is_requested() || dladdr((void *)&init_was_called, &own) == 0) {
        return;
    }
    check_name("MPI_Init", &own);
    check_name("MPI_Init_thread", &own);
    check_name("MPI_Finalize", &own);
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        check_name(interpose_signatures[kind].function, &own);
    }
}

#endif

__attribute__((destructor)) static void check_calls(void) {
    if (!atomic_load(&init_was_called) && interpose_is_requested() && has_run_mpi()) {
        fail("the MPI_Init that it called", owner_of("MPI_Init"));
    }
}
