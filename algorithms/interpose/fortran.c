/* Open MPI's Fortran functions that begin and end MPI (fortran.h), and those functions of MPICH's module mpi_f08 that
 * call PMPI's: the ones without buffers. A handle of mpi_f08 is an integer in a structure. */
#include "fortran.h"

#ifdef INTERPOSE_HAS_FORTRAN

static void set_error(MPI_Fint *error, int status) {
    if (error != NULL) {
        *error = status;
    }
}

void mpi_init_(MPI_Fint *error) { set_error(error, MPI_Init(NULL, NULL)); }
FORTRAN_NAME(mpi_init, mpi_init_, MPI_Fint *error)
FORTRAN_NAME(mpi_init__, mpi_init_, MPI_Fint *error)
FORTRAN_NAME(MPI_INIT, mpi_init_, MPI_Fint *error)
FORTRAN_NAME(ompi_init_f, mpi_init_, MPI_Fint *error)

void mpi_init_thread_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error) {
    set_error(error, MPI_Init_thread(NULL, NULL, *required, provided));
}
FORTRAN_NAME(mpi_init_thread, mpi_init_thread_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
FORTRAN_NAME(mpi_init_thread__, mpi_init_thread_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
FORTRAN_NAME(MPI_INIT_THREAD, mpi_init_thread_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)
FORTRAN_NAME(ompi_init_thread_f, mpi_init_thread_, MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error)

void mpi_finalize_(MPI_Fint *error) { set_error(error, MPI_Finalize()); }
FORTRAN_NAME(mpi_finalize, mpi_finalize_, MPI_Fint *error)
FORTRAN_NAME(mpi_finalize__, mpi_finalize_, MPI_Fint *error)
FORTRAN_NAME(MPI_FINALIZE, mpi_finalize_, MPI_Fint *error)
FORTRAN_NAME(ompi_finalize_f, mpi_finalize_, MPI_Fint *error)

#elif defined(MPICH) && !defined(SMPI_SHARED_MALLOC)

static void set_error(MPI_Fint *error, int status) {
    if (error != NULL) {
        *error = status;
    }
}

void mpi_init_f08_(MPI_Fint *error) { set_error(error, MPI_Init(NULL, NULL)); }

void mpi_init_thread_f08_(MPI_Fint *required, MPI_Fint *provided, MPI_Fint *error) {
    set_error(error, MPI_Init_thread(NULL, NULL, *required, provided));
}

void mpi_finalize_f08_(MPI_Fint *error) { set_error(error, MPI_Finalize()); }

void mpi_barrier_f08_(MPI_Fint *comm, MPI_Fint *error) { set_error(error, MPI_Barrier(PMPI_Comm_f2c(*comm))); }

void mpi_ibarrier_f08_(MPI_Fint *comm, MPI_Fint *request, MPI_Fint *error) {
    MPI_Request made;
    int status = MPI_Ibarrier(PMPI_Comm_f2c(*comm), &made);
    *request = PMPI_Request_c2f(made);
    set_error(error, status);
}

#if MPI_VERSION >= 4
void mpi_barrier_init_f08_(MPI_Fint *comm, MPI_Fint *info, MPI_Fint *request, MPI_Fint *error) {
    MPI_Request made;
    int status = MPI_Barrier_init(PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &made);
    *request = PMPI_Request_c2f(made);
    set_error(error, status);
}
#endif

#endif
