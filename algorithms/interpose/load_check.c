/* Verifies that programs call this library: if it was asked for and another library is called, the process ends with an
 * error. Cases that cannot be seen from here, such as a statically linked MPI, are found by `collwise program run`,
 * which looks for the load marker. */
#include "interpose.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int init_was_called;

void interpose_note_init(void) { atomic_store(&init_was_called, 1); }

void interpose_refuse_load(const char *function, const char *owner) {
    fprintf(stderr,
            "collwise: libcollwise was asked for but is not what this program calls: %s is that of %s; preload "
            "libcollwise.so ahead of every other MPI library (docs/interposing.md)\n",
            function, owner);
    fflush(NULL);
    _exit(1);
}

/* The file of the library whose function of this name programs call. */
const char *interpose_owner_of(const char *function) {
    Dl_info info;
    void *found = dlsym(RTLD_DEFAULT, function);
    return found != NULL && dladdr(found, &info) != 0 ? info.dli_fname : "another library";
}

__attribute__((destructor)) static void check_calls(void) {
    if (!atomic_load(&init_was_called) && interpose_is_requested() && interpose_has_run_mpi()) {
        interpose_refuse_load("the MPI_Init that it called", interpose_owner_of("MPI_Init"));
    }
}
