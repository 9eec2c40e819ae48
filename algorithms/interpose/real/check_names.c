/* Verifies that programs call this library's functions, by their names. */
#include "interpose.h"

#include <dlfcn.h>
#include <string.h>

static void check_name(const char *function, const Dl_info *own) {
    if (strcmp(interpose_owner_of(function), own->dli_fname) != 0) {
        interpose_refuse_load(function, interpose_owner_of(function));
    }
}

/* Names are looked up as a program's symbols are: the first library that defines one wins. */
__attribute__((constructor)) static void check_names(void) {
    Dl_info own;
    if (!interpose_is_requested() || dladdr((void *)&interpose_watched, &own) == 0) {
        return;
    }
    check_name("MPI_Init", &own);
    check_name("MPI_Init_thread", &own);
    check_name("MPI_Finalize", &own);
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        check_name(interpose_signatures[kind].function, &own);
    }
}
