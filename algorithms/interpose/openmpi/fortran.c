/* Open MPI's Fortran functions that begin and end MPI (fortran.h). */
#include "fortran.h"

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
