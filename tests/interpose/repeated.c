/* Calls in loops, whose arguments change now and then, through whatever stands in for MPI's collectives and through
 * PMPI: results must be the same. Prints how many calls were compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096, REPEATS = 3 };

static int compared, failures, salt;

static void fill(double *data, int rank) {
    salt++;
    for (int i = 0; i < ROOM; i++) {
        data[i] = (double)((i * 7 + rank * 13 + salt) % 101); /* sums are exact */
    }
}

static void compare(const char *what, const double *ours, const double *theirs) {
    compared++;
    if (memcmp(ours, theirs, ROOM * sizeof *ours) != 0) {
        failures++;
        printf("%s differs in call %d\n", what, compared);
    }
}

static void largest(void *in, void *inout, int *count, MPI_Datatype *type) {
    int bytes;
    MPI_Type_size(*type, &bytes);
    for (int i = 0; i < *count * bytes / (int)sizeof(double); i++) {
        double a = ((double *)in)[i], b = ((double *)inout)[i];
        ((double *)inout)[i] = a > b ? a : b;
    }
}

/* The form of a call. */
typedef struct {
    int count, root, in_place;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Comm comm;
} way;

static double sent[ROOM], ours[ROOM], theirs[ROOM];

/* Makes the same call both ways: CALL(prefix, result). */
#define BOTH(name, CALL)                                                                                               \
    for (int repeat = 0; repeat < REPEATS; repeat++) {                                                                 \
        fill(sent, rank);                                                                                              \
        fill(ours, rank);                                                                                              \
        memcpy(theirs, ours, sizeof ours);                                                                             \
        CALL(, ours);                                                                                                  \
        CALL(P, theirs);                                                                                               \
        compare(name, ours, theirs);                                                                                   \
    }

#define BCAST(P, to) P##MPI_Bcast(to, w.count, w.type, w.root, w.comm)
#define REDUCE(P, to)                                                                                                  \
    P##MPI_Reduce(w.in_place &&rank == w.root ? MPI_IN_PLACE : sent, to, w.count, w.type, w.op, w.root, w.comm)
#define ALLREDUCE(P, to) P##MPI_Allreduce(w.in_place ? MPI_IN_PLACE : sent, to, w.count, w.type, w.op, w.comm)
#define GATHER(P, to)                                                                                                  \
    P##MPI_Gather(w.in_place &&rank == w.root ? MPI_IN_PLACE : sent, w.count, w.type, to, w.count, w.type, w.root,     \
                  w.comm)
#define SCATTER(P, to)                                                                                                 \
    P##MPI_Scatter(sent, w.count, w.type, w.in_place &&rank == w.root ? MPI_IN_PLACE : to, w.count, w.type, w.root,    \
                   w.comm)
#define ALLGATHER(P, to)                                                                                               \
    P##MPI_Allgather(w.in_place ? MPI_IN_PLACE : sent, w.count, w.type, to, w.count, w.type, w.comm)
#define ALLTOALL(P, to) P##MPI_Alltoall(w.in_place ? MPI_IN_PLACE : sent, w.count, w.type, to, w.count, w.type, w.comm)
#define BARRIER(P, to) P##MPI_Barrier(w.comm)

static void all_collectives(way w) {
    int rank;
    MPI_Comm_rank(w.comm, &rank);
    BOTH("bcast", BCAST)
    BOTH("gather", GATHER)
    BOTH("scatter", SCATTER)
    BOTH("allgather", ALLGATHER)
    BOTH("alltoall", ALLTOALL)
    BOTH("barrier", BARRIER)
    BOTH("reduce", REDUCE)
    BOTH("allreduce", ALLREDUCE)
}

static void on(MPI_Comm comm) {
    int procs;
    MPI_Op own;
    MPI_Datatype every_other, pair;
    MPI_Comm_size(comm, &procs);
    MPI_Op_create(largest, 1, &own);
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &every_other);
    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&every_other);
    MPI_Type_commit(&pair);
    way usual = {.count = 5, .root = 0, .type = MPI_DOUBLE, .op = MPI_SUM, .comm = comm};
    for (int round = 0; round < 2; round++) {
        way w = usual;
        all_collectives(w);
        w.root = procs - 1;
        all_collectives(w);
        w.in_place = 1;
        all_collectives(w);
        w = usual;
        w.count = 200;
        all_collectives(w);
        w.op = MPI_MAX;
        all_collectives(w);
        w.count = 0;
        all_collectives(w);
        w = usual;
        w.type = MPI_INT;
        w.op = MPI_BXOR;
        all_collectives(w);
        w = usual;
        w.type = MPI_FLOAT;
        w.op = MPI_MIN;
        all_collectives(w);
        w = usual;
        w.op = own;
        all_collectives(w);
        w.type = pair;
        all_collectives(w);
        w.type = every_other;
        w.op = MPI_OP_NULL;
        int rank;
        MPI_Comm_rank(comm, &rank);
        BOTH("bcast of a vector", BCAST)
        BOTH("gather of vectors", GATHER)
        BOTH("alltoall of vectors", ALLTOALL)
    }
    MPI_Type_free(&pair);
    MPI_Type_free(&every_other);
    MPI_Op_free(&own);
}

int main(int argc, char **argv) {
    MPI_Comm reversed;
    int rank, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    on(MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) { /* the second may get the handle of the first */
        MPI_Comm_split(MPI_COMM_WORLD, 0, i == 0 ? -rank : rank, &reversed);
        on(reversed);
        MPI_Comm_free(&reversed);
    }
    PMPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) {
        printf("ok %d\n", compared);
    }
    MPI_Finalize();
    return failures != 0;
}
