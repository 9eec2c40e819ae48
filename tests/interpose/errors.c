/* Errors of collectives reach the program's own error handlers: those that MPI raises for invalid arguments, and those
 * within an algorithm of ours, if the program has an argument: MPI's own may hang where processes disagree on the size.
 * Two processes or more. Prints "ok", or what is wrong. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 4096 };

static int handled, handled_class;

static void count(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    MPI_Error_class(*code, &handled_class);
}

static jmp_buf before;

static void leave(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(before, 1);
}

static long wrong(int is_right, const char *what) {
    if (!is_right) {
        printf("wrong: %s\n", what);
    }
    return !is_right;
}

/* MPICH says of several requests only that one of them has failed. */
static int is_truncated(int class) { return class == MPI_ERR_TRUNCATE || class == MPI_ERR_IN_STATUS; }

/* The last process expects less than it is sent. */
static int short_bcast(int rank, int procs, MPI_Comm comm) {
    int data[64] = {0};
    return MPI_Bcast(data, rank == procs - 1 ? 16 : 64, MPI_INT, 0, comm);
}

/* More for the process itself than it has room for: nothing is written behind that. */
static long check_own_block(MPI_Comm comm) {
    enum { SENT = 32, RECEIVED = 8 };
    int procs, class, *sent = calloc(ROOM, sizeof *sent), *received = calloc(ROOM, sizeof *received);
    long failures = 0;
    MPI_Comm_size(comm, &procs);
    for (int i = 0; i < ROOM; i++) {
        sent[i] = 1;
    }
    MPI_Error_class(MPI_Allgather(sent, SENT, MPI_INT, received, RECEIVED, MPI_INT, comm), &class);
    failures += wrong(class == MPI_ERR_TRUNCATE, "a long block of its own, allgather");
    MPI_Error_class(MPI_Alltoall(sent, SENT, MPI_INT, received, RECEIVED, MPI_INT, comm), &class);
    failures += wrong(class == MPI_ERR_TRUNCATE, "a long block of its own, alltoall");
    int is_clean = 1;
    for (int i = procs * RECEIVED; i < ROOM; i++) {
        is_clean &= received[i] == 0;
    }
    failures += wrong(is_clean, "behind the receive buffer");
    free(sent);
    free(received);
    return failures;
}

static long check_returned(int rank, int procs, int within_ours) {
    int data[64] = {0}, class = MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    long failures = wrong(MPI_Bcast(data, 1, MPI_INT, procs, MPI_COMM_WORLD) != MPI_SUCCESS, "an invalid root");
    failures += wrong(MPI_Bcast(data, -1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS, "a negative count");
    if (within_ours) {
        MPI_Error_class(short_bcast(rank, procs, MPI_COMM_WORLD), &class);
        failures += wrong(rank == procs - 1 ? is_truncated(class) : class == MPI_SUCCESS, "a short buffer");
    }
#if MPI_VERSION >= 4
    MPI_Error_class(MPI_Bcast_c(data, (MPI_Count)5 - ((MPI_Count)1 << 32), MPI_INT, 0, MPI_COMM_WORLD), &class);
    failures += wrong(class == MPI_ERR_COUNT, "a negative large count");
#endif
    failures += check_own_block(MPI_COMM_WORLD);
    return failures + wrong(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "the next collective");
}

static long check_handled(int rank, int procs, int within_ours) {
    int data[64] = {0};
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(count, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Bcast(data, 1, MPI_INT, -1, comm);
    long failures = wrong(handled == 1 && handled_class == MPI_ERR_ROOT, "a handler of its own, invalid root");
    if (within_ours) {
        short_bcast(rank, procs, comm);
        int is_last = rank == procs - 1,
            is_right = is_last ? is_truncated(handled_class) : handled_class == MPI_ERR_ROOT;
        failures += wrong(handled == 1 + is_last && is_right, "a handler of its own, a short buffer");
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    return failures;
}

/* Process 0 leaves a broadcast by its handler. What it calls then is the program's own, and counted as such. */
static long check_left(int rank, int procs) {
    int data[64] = {0};
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    volatile int has_left = 1;
    if (setjmp(before) == 0) {
        MPI_Bcast(data, rank == 0 ? 16 : 64, MPI_INT, procs - 1, comm);
        has_left = 0;
    }
    long failures = wrong(has_left == (rank == 0), "a handler that leaves the call");
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return failures + wrong(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "the collective after that");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, procs;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    long failures = check_returned(rank, procs, argc > 1) + check_handled(rank, procs, argc > 1), sum;
    failures += argc > 1 ? check_left(rank, procs) : 0;
    MPI_Allreduce(&failures, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && sum == 0) {
        printf("ok\n");
    }
    MPI_Finalize();
    return sum != 0;
}
