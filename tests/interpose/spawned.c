/* Processes that were started by others of the program, without libcollwise's settings, in one communicator with these.
 * Prints "ok". Two processes. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { ITEMS = 1000, SECONDS = 60 };

int main(int argc, char **argv) {
    int rank, wrong = 0, everywhere, data[ITEMS];
    MPI_Comm parent, others, all;
    (void)argc;
    alarm(SECONDS);
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        char *with[] = {"-u", "COLLWISE_ALGORITHMS", argv[0], NULL};
        MPI_Comm_spawn("env", with, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    } else {
        others = parent;
    }
    MPI_Intercomm_merge(others, parent != MPI_COMM_NULL, &all);
    MPI_Comm_set_name(all, "merged");
    MPI_Comm_rank(all, &rank);
    for (int i = 0; i < ITEMS; i++) {
        data[i] = rank == 0 ? i : -1;
    }
    MPI_Bcast(data, ITEMS, MPI_INT, 0, all);
    for (int i = 0; i < ITEMS; i++) {
        wrong = wrong || data[i] != i;
    }
    MPI_Allreduce(&wrong, &everywhere, 1, MPI_INT, MPI_MAX, all);
    if (rank == 0) {
        printf(everywhere ? "wrong\n" : "ok\n");
    }
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    MPI_Finalize();
    return 0;
}
