/* Subspace iteration: the leading eigenvectors of a matrix whose rows are spread over the processes.
 *
 * Each step broadcasts the vectors and adds up the products that all processes have made with their own rows, a vector
 * of 64 Ki doubles. All numbers are whole and small, so that sums do not depend on their order. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1 << 16, STEPS = 5, MODULUS = 251 };

static double vectors[WORDS], products[WORDS], sums[WORDS];

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < WORDS; i++) {
        vectors[i] = rank == 0 ? i % MODULUS : 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), check = 0;
    for (int step = 0; step < STEPS; step++) {
        MPI_Bcast(vectors, WORDS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < WORDS; i++) {
            products[i] = (double)(((long)vectors[i] * (rank + 2) + i) % MODULUS);
        }
        MPI_Allreduce(products, sums, WORDS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < WORDS; i++) {
            vectors[i] = (double)((long)sums[i] % MODULUS);
            check += vectors[i];
        }
    }
    double seconds = MPI_Wtime() - start;
    if (rank == 0) {
        printf("checksum %.0f\nseconds %.6f\n", check, seconds);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
