/* Messages of the program that nobody receives, and receives of any message to which nothing is sent, when MPI_Finalize
 * is called. Prints "ok". Two processes or more. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, procs, message[4] = {1 << 30, 7, 7, 7}, never[4] = {0};
    MPI_Request request, waiting;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ok\n");
        fflush(stdout);
    }
    if (rank == 1) {
        MPI_Isend(message, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank == 2) {
        MPI_Irecv(never, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting);
    }
    MPI_Finalize();
    return 0;
}
