/* A reader's program in short: it calls some collectives. */
#include <mpi.h>

int main(int argc, char **argv) {
    static char data[65536];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 10; i++) {
        MPI_Bcast(data, sizeof data, MPI_CHAR, 0, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, data, 1024, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    }
    return MPI_Finalize();
}
