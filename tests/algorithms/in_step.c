/* The time that processes spend in a collective that others enter later.
 *
 *     in_step bcast|reduce ALGORITHM BYTES SEGMENT_BYTES LATE_SECONDS
 *
 * Late are those that receive from all others in the end: of a broadcast all but the root, of a reduction the root.
 * Rank 0, the root, prints the longest time of the others, in seconds. */
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 6) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank, count = atoi(argv[3]), is_reduction = strcmp(argv[1], "reduce") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *own = calloc((size_t)count, 1), *result = calloc((size_t)count, 1);
    collwise_call call = {.send = own,
                          .receive = result,
                          .receive_count = count,
                          .receive_type = MPI_BYTE,
                          .op = MPI_BOR,
                          .comm = MPI_COMM_WORLD};
    const collwise_algorithm *algorithm = collwise_find(argv[1], argv[2]);
    collwise_parameters with = {.segment_bytes = (size_t)atoi(argv[4])};
    int is_late = (rank == 0) == is_reduction;
    double longest = 0.0;
    /* In the first round connections are made, and nobody is late. */
    for (int round = 0; round < 2; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (round == 1 && is_late) {
            usleep((useconds_t)(1e6 * atof(argv[5])));
        }
        double start = MPI_Wtime();
        collwise_run(algorithm, &call, with);
        double taken = is_late ? 0.0 : MPI_Wtime() - start;
        MPI_Reduce(&taken, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("%.9f\n", longest);
    }
    free(own);
    free(result);
    MPI_Finalize();
    return 0;
}
