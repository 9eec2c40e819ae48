/* Those functions of MPICH's Fortran module mpi_f08 that call PMPI's: the ones without buffers. A handle of mpi_f08 is
 * an integer in a structure. */
#include <mpi.h>
#include <stddef.h>

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
