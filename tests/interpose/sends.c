/* The messages that process 0 sends in each of three equal broadcasts: the last two repeat a call. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    sends++;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, data[5] = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int call = 0; call < 3; call++) {
        sends = 0;
        MPI_Bcast(data, 5, MPI_INT, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%d\n", sends);
        }
    }
    MPI_Finalize();
    return 0;
}
