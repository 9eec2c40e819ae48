/* Collectives that the library counts and passes on: non-blocking, persistent and large ones, and one of neighbours.
 * Prints "ok", or what is wrong. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, procs, mine, sum = 0, right = 1;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    int expected = procs * (procs + 1) / 2;
    mine = rank + 1;
    MPI_Comm_set_name(MPI_COMM_WORLD, "all, \"the\" processes");

    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right &= sum == expected;
#ifndef SMPI_SHARED_MALLOC
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        sum = 0;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right &= sum == expected;
    }
    MPI_Request_free(&request);

    int sides[2] = {-1, -1}, dimensions[1] = {procs}, periods[1] = {1};
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &ring);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, sides, 1, MPI_INT, ring);
    right &= sides[0] == (rank + procs - 1) % procs && sides[1] == (rank + 1) % procs;
    MPI_Comm_free(&ring);
#endif
#if MPI_VERSION >= 4
    sum = 0;
    MPI_Allreduce_c(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= sum == expected;
    /* More elements than an int counts, of no bytes each. */
    MPI_Datatype nothing;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    MPI_Bcast_c(&sum, (MPI_Count)INT_MAX + 1, nothing, 0, MPI_COMM_WORLD);
    MPI_Type_free(&nothing);
#endif
    int all;
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s\n", all ? "ok" : "wrong");
    }
    MPI_Finalize();
    return 0;
}
