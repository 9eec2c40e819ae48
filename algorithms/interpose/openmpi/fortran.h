/* Conversions for Open MPI's Fortran functions. These call PMPI's functions in C, so the library has its own of each
 * collective, for mpif.h, the module mpi, and mpi_f08, whose functions call ompi_*_f. MPICH's Fortran functions call
 * those of C by the names that the library has. Where Fortran's integers are not C's, programs get Open MPI's own
 * collectives. */
#ifndef COLLWISE_INTERPOSE_FORTRAN_H
#define COLLWISE_INTERPOSE_FORTRAN_H

#include "fast_path.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "Fortran's integers must be C's");

/* The other names of a function. The prototypes are not those of any header. */
#define FORTRAN_NAME(name, function, ...) void name(__VA_ARGS__) __attribute__((alias(#function)));

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The common blocks by whose addresses Open MPI knows MPI_IN_PLACE and MPI_BOTTOM, by compilers' names for them. */
#define FORTRAN_COMMON(name)                                                                                           \
    extern int name __attribute__((weak)), name##_ __attribute__((weak)), name##__ __attribute__((weak))
FORTRAN_COMMON(mpi_fortran_in_place);
FORTRAN_COMMON(mpi_fortran_bottom);
extern int MPI_FORTRAN_IN_PLACE __attribute__((weak)), MPI_FORTRAN_BOTTOM __attribute__((weak));

static inline void *fortran_buffer(void *buffer) {
    if (buffer == &mpi_fortran_in_place_ || buffer == &mpi_fortran_in_place || buffer == &mpi_fortran_in_place__ ||
        buffer == &MPI_FORTRAN_IN_PLACE) {
        return buffer == NULL ? buffer : MPI_IN_PLACE;
    }
    if (buffer == &mpi_fortran_bottom_ || buffer == &mpi_fortran_bottom || buffer == &mpi_fortran_bottom__ ||
        buffer == &MPI_FORTRAN_BOTTOM) {
        return MPI_BOTTOM;
    }
    return buffer;
}

/* Sets *function, the address of a function pointer, to Open MPI's function of that name, kept in *found. */
static inline void find_next(void **found, const char *name, void *function) {
    if (*found == NULL) {
        *found = dlsym(RTLD_NEXT, name);
        if (*found == NULL) {
            fprintf(stderr, "collwise: the MPI library has no %s\n", name);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    memcpy(function, found, sizeof *found);
}

#endif
