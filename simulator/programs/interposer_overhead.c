/* Collectives through whatever stands in for them, against PMPI's in the same run, for
 * benchmarks/interposer_overhead.py.
 *
 *     interposer_overhead BLOCKS CALLS BLOCK_BYTES COLLECTIVE BYTES...
 *
 * The collective is bcast, gather, scatter, allgather, alltoall, barrier, reduce or allreduce; reductions sum doubles.
 * Blocks of both take turns; a block has CALLS calls, or as many as have BLOCK_BYTES bytes together. Prints one JSON
 * object for each size: the median nanoseconds of both, and the median and the quartiles of the difference between
 * neighbouring blocks, and the least of both. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 5 }; /* of the program's arguments */

typedef struct {
    double *send, *receive;
    int bytes, doubles;
} buffers;

typedef void caller(const buffers *with);

#define CALLERS(PREFIX, name)                                                                                          \
    static void name##_bcast(const buffers *with) {                                                                    \
        PREFIX##MPI_Bcast(with->receive, with->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);                                    \
    }                                                                                                                  \
    static void name##_gather(const buffers *with) {                                                                   \
        PREFIX##MPI_Gather(with->send, with->bytes, MPI_BYTE, with->receive, with->bytes, MPI_BYTE, 0,                 \
                           MPI_COMM_WORLD);                                                                            \
    }                                                                                                                  \
    static void name##_scatter(const buffers *with) {                                                                  \
        PREFIX##MPI_Scatter(with->send, with->bytes, MPI_BYTE, with->receive, with->bytes, MPI_BYTE, 0,                \
                            MPI_COMM_WORLD);                                                                           \
    }                                                                                                                  \
    static void name##_allgather(const buffers *with) {                                                                \
        PREFIX##MPI_Allgather(with->send, with->bytes, MPI_BYTE, with->receive, with->bytes, MPI_BYTE,                 \
                              MPI_COMM_WORLD);                                                                         \
    }                                                                                                                  \
    static void name##_alltoall(const buffers *with) {                                                                 \
        PREFIX##MPI_Alltoall(with->send, with->bytes, MPI_BYTE, with->receive, with->bytes, MPI_BYTE, MPI_COMM_WORLD); \
    }                                                                                                                  \
    static void name##_barrier(const buffers *with) {                                                                  \
        (void)with;                                                                                                    \
        PREFIX##MPI_Barrier(MPI_COMM_WORLD);                                                                           \
    }                                                                                                                  \
    static void name##_reduce(const buffers *with) {                                                                   \
        PREFIX##MPI_Reduce(with->send, with->receive, with->doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);          \
    }                                                                                                                  \
    static void name##_allreduce(const buffers *with) {                                                                \
        PREFIX##MPI_Allreduce(with->send, with->receive, with->doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);          \
    }

CALLERS(, through)
CALLERS(P, plain)

typedef struct {
    const char *name;
    caller *through, *plain;
} collective;

#define BOTH(name)                                                                                                     \
    { #name, through_##name, plain_##name }

static const collective collectives[] = {BOTH(bcast),    BOTH(gather),  BOTH(scatter), BOTH(allgather),
                                         BOTH(alltoall), BOTH(barrier), BOTH(reduce),  BOTH(allreduce)};

/* Nanoseconds of a call, the mean of a block until both processes are done. */
static double time_block(caller *call, const buffers *with, int calls) {
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = PMPI_Wtime();
    for (int i = 0; i < calls; i++) {
        call(with);
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    return (PMPI_Wtime() - start) * 1e9 / calls;
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void *allocate(size_t bytes) {
    void *memory = calloc(bytes + 8, 1);
    if (memory == NULL) {
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* The numbers of blocks and of calls in one, and the most bytes of one. */
typedef struct {
    int blocks, calls, bytes;
} amount;

static void measure(const collective *of, int bytes, const amount *asked, int rank, int procs) {
    int blocks = asked->blocks;
    size_t room = (size_t)bytes * (size_t)procs;
    buffers with = {allocate(room), allocate(room), bytes, bytes / (int)sizeof(double)};
    double *through = allocate((size_t)blocks * sizeof *through), *plain = allocate((size_t)blocks * sizeof *plain);
    double *added = allocate((size_t)blocks * sizeof *added);
    int calls = bytes > asked->bytes / asked->calls ? asked->bytes / bytes + 1 : asked->calls;
    time_block(of->through, &with, calls);
    time_block(of->plain, &with, calls);
    for (int i = 0; i < blocks; i++) {
        /* The two take turns in going first, so that a trend favours neither. */
        if (i % 2 == 0) {
            through[i] = time_block(of->through, &with, calls);
        }
        plain[i] = time_block(of->plain, &with, calls);
        if (i % 2 == 1) {
            through[i] = time_block(of->through, &with, calls);
        }
        added[i] = through[i] - plain[i];
    }
    qsort(through, (size_t)blocks, sizeof *through, compare);
    qsort(plain, (size_t)blocks, sizeof *plain, compare);
    qsort(added, (size_t)blocks, sizeof *added, compare);
    if (rank == 0) {
        printf("{\"bytes\": %d, \"through\": %.1f, \"plain\": %.1f, \"added\": %.1f, \"added_low\": %.1f, "
               "\"added_high\": %.1f, \"through_min\": %.1f, \"plain_min\": %.1f}\n",
               bytes, through[blocks / 2], plain[blocks / 2], added[blocks / 2], added[blocks / 4],
               added[3 * blocks / 4], through[0], plain[0]);
        fflush(stdout);
    }
    free(with.send);
    free(with.receive);
    free(through);
    free(plain);
    free(added);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, procs;
    amount asked = {0};
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &procs);
    const collective *of = NULL;
    if (argc > FIRST_SIZE) {
        asked = (amount){atoi(argv[1]), atoi(argv[2]), atoi(argv[3])};
    }
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0] && argc > FIRST_SIZE; i++) {
        of = strcmp(collectives[i].name, argv[FIRST_SIZE - 1]) == 0 ? &collectives[i] : of;
    }
    if (of == NULL || asked.blocks < 1 || asked.calls < 1 || asked.bytes < 1) {
        fprintf(stderr, "usage: interposer_overhead BLOCKS CALLS BLOCK_BYTES COLLECTIVE BYTES...\n");
        PMPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = FIRST_SIZE; i < argc; i++) {
        measure(of, atoi(argv[i]), &asked, rank, procs);
    }
    MPI_Finalize();
    return 0;
}
