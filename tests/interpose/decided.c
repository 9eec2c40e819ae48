/* A program that asks a decision table for itself, and broadcasts as it says: decided TABLE BYTES. */
#include "collwise_decisions.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, procs;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    char problem[COLLWISE_PROBLEM_ROOM];
    collwise_decisions *table = collwise_decisions_read(argv[1], problem);
    if (table == NULL) {
        printf("%s", rank == 0 ? problem : "");
        MPI_Finalize();
        return rank == 0;
    }
    int bytes = atoi(argv[2]), wrong = 0;
    char *data = malloc((size_t)bytes);
    for (int i = 0; i < bytes; i++) {
        data[i] = (char)(rank == 0 ? i % 100 : -1);
    }
    collwise_call call = {.receive = data, .receive_count = bytes, .receive_type = MPI_CHAR, .comm = MPI_COMM_WORLD};
    collwise_decision chosen = collwise_decide(table, COLLWISE_BCAST, procs, 1, (size_t)bytes);
    if (chosen.algorithm != NULL && collwise_objection(chosen.algorithm, &call) == NULL) {
        collwise_run(chosen.algorithm, &call, chosen.with);
    } else {
        MPI_Bcast(data, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < bytes; i++) {
        wrong += data[i] != i % 100;
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s %zu %d", chosen.algorithm == NULL ? "MPI's own" : chosen.algorithm->name, chosen.with.segment_bytes,
               wrong);
    }
    free(data);
    collwise_decisions_free(table);
    MPI_Finalize();
    return 0;
}
