/* Threads that come and go, each with collectives on a communicator of its own, the last of which it makes while it
 * ends. Prints "ok", or what is wrong; or "no threads" where MPI does not allow them. */
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, ROUNDS = 60, MOST = 40, LEFT_BYTES = 1 << 18 };

static MPI_Comm comms[THREADS];
static int failures[THREADS];
static pthread_key_t at_end;

static void call_all(int of) {
    int rank, procs, sums[MOST], data[MOST];
    MPI_Comm comm = comms[of];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &procs);
    for (int count = 1; count <= MOST; count += 13) {
        for (int i = 0; i < count; i++) {
            data[i] = rank + of + i;
        }
        MPI_Allreduce(data, sums, count, MPI_INT, MPI_SUM, comm);
        MPI_Bcast(data, count, MPI_INT, procs - 1, comm);
        for (int i = 0; i < count; i++) {
            int sum = procs * (of + i) + procs * (procs - 1) / 2;
            failures[of] += sums[i] != sum || data[i] != procs - 1 + of + i;
        }
    }
}

static void call_again(void *of) { call_all((int)((int *)of - failures)); }

static void *run(void *of) {
    pthread_setspecific(at_end, of);
    call_all((int)((int *)of - failures));
    return NULL;
}

static void run_all(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, &failures[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv) {
    int provided, rank, wrong = 0, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_key_create(&at_end, call_again);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    if (provided == MPI_THREAD_MULTIPLE) {
        run_all();
        size_t before = mallinfo2().uordblks;
        for (int i = 0; i < ROUNDS; i++) {
            run_all();
        }
        size_t after = mallinfo2().uordblks;
        if (after > before + LEFT_BYTES) {
            wrong++;
            printf("%d threads left %zu bytes\n", ROUNDS * THREADS, after - before);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        wrong += failures[i];
        MPI_Comm_free(&comms[i]);
    }
    PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s\n", all != 0 ? "wrong" : provided == MPI_THREAD_MULTIPLE ? "ok" : "no threads");
    }
    MPI_Finalize();
    return wrong != 0;
}
