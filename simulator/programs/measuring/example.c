/* A program that times an operation of its own, here a broadcast of 1 MiB and what it does with it:
 *
 *     mpicc example.c -lcollwise_measuring -lm */
#include "collwise_measuring.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned char *message;
    int bytes;
    long sum;
} arguments;

static void share_and_add(void *context) {
    arguments *mine = context;
    MPI_Bcast(mine->message, mine->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    mine->sum = 0;
    for (int i = 0; i < mine->bytes; i++) {
        mine->sum += mine->message[i];
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    arguments mine = {calloc(1 << 20, 1), 1 << 20, 0};
    cw_session *session = cw_open(MPI_COMM_WORLD, NULL, NULL);
    if (mine.message == NULL || session == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    cw_method method = cw_usual_method();
    method.timing = CW_GLOBAL;
    method.max_repetitions = 50;
    cw_result result;
    cw_status status = cw_measure(session, 0, share_and_add, &mine, &method, &result);
    if (rank == 0 && status == CW_OK) {
        printf("mean %.3g s +- %.2g s, median %.3g s, %d repetitions, %s\n", result.mean, result.half_width,
               result.median, result.repetitions, result.precise ? "precise" : "not precise");
    }
    cw_result_free(&result);
    cw_close(session);
    free(mine.message);
    MPI_Finalize();
    return status == CW_OK ? 0 : 1;
}
