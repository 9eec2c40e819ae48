/* Communicators whose first collective is a non-blocking one, or one that is never replaced. A process may start a
 * non-blocking collective before the others do, and they may wait for a message that it sends afterwards. Prints "ok",
 * or what is wrong. Two processes or more. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

enum { TAG = 3, SECONDS = 60 };

typedef void starter(int *data, MPI_Comm comm, MPI_Request *request);

static void start_bcast(int *data, MPI_Comm comm, MPI_Request *request) {
    MPI_Ibcast(data, 1, MPI_INT, 0, comm, request);
}

static void start_barrier(int *data, MPI_Comm comm, MPI_Request *request) {
    (void)data;
    MPI_Ibarrier(comm, request);
}

static void start_allreduce(int *data, MPI_Comm comm, MPI_Request *request) {
    MPI_Iallreduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_MAX, comm, request);
}

static starter *const starters[] = {start_bcast, start_barrier, start_allreduce};

/* Processes start one after another, each when the one before it has said that it has. */
static void start_in_turn(starter *start, int *data, MPI_Comm comm) {
    int rank, procs;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &procs);
    if (rank > 0) {
        MPI_Recv(NULL, 0, MPI_INT, rank - 1, TAG, comm, MPI_STATUS_IGNORE);
    }
    start(data, comm, &request);
    if (rank + 1 < procs) {
        MPI_Send(NULL, 0, MPI_INT, rank + 1, TAG, comm);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, wrong = 0;
#ifndef SMPI_SHARED_MALLOC
    alarm(SECONDS);
#endif
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof starters / sizeof starters[0]; i++) {
        MPI_Comm comm;
        int data = rank == 0 ? 7 : 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "started");
        start_in_turn(starters[i], &data, comm);
        /* Blocking ones afterwards, while another one is under way. */
        MPI_Request request;
        int sum = 0, one = 1, procs;
        MPI_Comm_size(comm, &procs);
        start_in_turn(start_barrier, &data, comm);
        MPI_Ibcast(&data, 1, MPI_INT, 0, comm, &request);
        MPI_Bcast(&sum, 1, MPI_INT, 0, comm);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += data != 7 || sum != procs;
        MPI_Comm_free(&comm);
    }
    int all = 0;
    PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s\n", all == 0 ? "ok" : "wrong");
    }
    MPI_Finalize();
    return wrong != 0;
}
