/* One call of MPI's own collective from rank 0, for those who watch what an MPI library does with it.
 *
 *     call bcast|gather BYTES
 *
 * BYTES as in the catalogue: what the root sends to every process, or what each process contributes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int procs, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int bytes = argc == 3 ? atoi(argv[2]) : -1;
    int is_bcast = argc == 3 && strcmp(argv[1], "bcast") == 0;
    int is_gather = argc == 3 && strcmp(argv[1], "gather") == 0;
    if (bytes < 0 || !(is_bcast || is_gather)) {
        fprintf(stderr, "usage: call bcast|gather BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    char *mine = calloc((size_t)bytes + 1, 1);
    char *all = rank == 0 && is_gather ? calloc((size_t)bytes * (size_t)procs + 1, 1) : NULL;
    if (mine == NULL || (rank == 0 && is_gather && all == NULL)) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (is_bcast) {
        MPI_Bcast(mine, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    free(all);
    free(mine);
    MPI_Finalize();
    return 0;
}
