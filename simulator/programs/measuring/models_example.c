/* A program that measures LMO on its processes, writes it into a file, and says which scatter it predicts to be faster:
 *
 *     mpicc models_example.c -lcollwise_measuring -lm && mpirun -n 4 a.out lmo.txt
 *
 * With a file that is there already it measures nothing. */
#include "collwise_models.h"

int main(int argc, char **argv) {
    enum { BYTES = 32768 };
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *name = argc > 1 ? argv[1] : "lmo.txt";
    cw_lmo lmo;
    FILE *file = fopen(name, "r");
    int there = file != NULL, everywhere;
    /* Processes of other nodes may not see the file. */
    MPI_Allreduce(&there, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    int failed;
    if (everywhere) {
        failed = cw_lmo_load(&lmo, file) != 0;
    } else {
        cw_session *session = cw_open(MPI_COMM_WORLD, NULL, NULL);
        if (session == NULL) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        cw_method method = cw_usual_method();
        failed = cw_lmo_estimate(session, BYTES, &method, &lmo) != CW_OK;
        cw_close(session);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (rank == 0 && !failed && !everywhere && (file = fopen(name, "w")) != NULL) {
        failed = cw_lmo_save(&lmo, file) != 0;
        fclose(file);
    }
    for (int bytes = 1024; rank == 0 && !failed && bytes <= BYTES; bytes *= 4) {
        printf("%d bytes: message %.6g s, scatter linear %.6g s, binomial %.6g s: %s\n", bytes,
               cw_lmo_message(&lmo, 0, 1, bytes), cw_lmo_linear(&lmo, 0, bytes), cw_lmo_binomial(&lmo, 0, bytes),
               cw_lmo_prefers_binomial(&lmo, 0, bytes) ? "binomial" : "linear");
    }
    cw_lmo_free(&lmo);
    MPI_Finalize();
    return failed;
}
