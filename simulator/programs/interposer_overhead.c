/* An MPI_Allreduce of 8 bytes through whatever stands in for it, against PMPI_Allreduce in the same run, for
 * benchmarks/interposer_overhead.py.
 *
 *     interposer_overhead [BLOCKS]
 *
 * Blocks of both take turns. Prints one JSON object: the median nanoseconds of both, and the median and the quartiles
 * of the difference between neighbouring blocks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 2000 };

typedef int allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

/* Nanoseconds of a call, the mean of a block. */
static double time_block(allreduce *function) {
    double mine = 1, sum;
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = PMPI_Wtime();
    for (int i = 0; i < CALLS; i++) {
        function(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    return (PMPI_Wtime() - start) * 1e9 / CALLS;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, blocks = argc == 2 ? atoi(argv[1]) : 400;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    blocks = blocks > 0 ? blocks : 1;
    double *through = calloc((size_t)blocks, sizeof *through), *plain = calloc((size_t)blocks, sizeof *plain);
    double *added = calloc((size_t)blocks, sizeof *added);
    if (through == NULL || plain == NULL || added == NULL) {
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    time_block(MPI_Allreduce);
    time_block(PMPI_Allreduce);
    for (int i = 0; i < blocks; i++) {
        /* The two take turns in going first, so that a trend favours neither. */
        if (i % 2 == 0) {
            through[i] = time_block(MPI_Allreduce);
        }
        plain[i] = time_block(PMPI_Allreduce);
        if (i % 2 == 1) {
            through[i] = time_block(MPI_Allreduce);
        }
        added[i] = through[i] - plain[i];
    }
    qsort(through, (size_t)blocks, sizeof *through, compare);
    qsort(plain, (size_t)blocks, sizeof *plain, compare);
    qsort(added, (size_t)blocks, sizeof *added, compare);
    if (rank == 0) {
        printf("{\"through\": %.1f, \"plain\": %.1f, \"added\": %.1f, \"added_low\": %.1f, \"added_high\": %.1f}\n",
               through[blocks / 2], plain[blocks / 2], added[blocks / 2], added[blocks / 4], added[3 * blocks / 4]);
    }
    free(through);
    free(plain);
    free(added);
    MPI_Finalize();
    return 0;
}
