/* The parts of MPI 1 and SimGrid that SimGrid's copy of MPICH's tests uses, for libraries without them. */
#ifndef COLLWISE_MPICH_TESTS_H
#define COLLWISE_MPICH_TESTS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#undef MPI_Errhandler_set
#define MPI_Errhandler_set MPI_Comm_set_errhandler
#undef MPI_Type_extent
#define MPI_Type_extent mpich_tests_extent
#undef MPI_UB
#define MPI_UB MPI_DATATYPE_NULL
#undef MPI_Type_struct
#define MPI_Type_struct mpich_tests_struct

static inline int mpich_tests_extent(MPI_Datatype type, MPI_Aint *extent) {
    MPI_Aint low;
    return MPI_Type_get_extent(type, &low, extent);
}

/* The last member is MPI_UB. */
static inline int mpich_tests_struct(int members, int *lengths, MPI_Aint *places, MPI_Datatype *types,
                                     MPI_Datatype *made) {
    MPI_Datatype unbounded;
    MPI_Type_create_struct(members - 1, lengths, places, types, &unbounded);
    MPI_Type_create_resized(unbounded, 0, places[members - 1], made);
    return MPI_Type_free(&unbounded);
}

#ifndef SMPI_H

/* Some end without MPI_Finalize. */
static void mpich_tests_finalize(void) {
    int is_begun, is_over;
    MPI_Initialized(&is_begun);
    MPI_Finalized(&is_over);
    if (is_begun && !is_over) {
        MPI_Finalize();
    }
}

__attribute__((constructor)) static void mpich_tests_begin(void) { atexit(mpich_tests_finalize); }

#endif

#ifndef _XBT_CONCAT3
#define MPICH_TESTS_JOINED(a, b, c) a##b##c
#define _XBT_CONCAT3(a, b, c) MPICH_TESTS_JOINED(a, b, c)
#endif

#endif
