/* Every collective twice, by MPI_* and by PMPI_*, which no library can stand in for: the results must be the same
 * bytes. Exit code 1 and a line for each difference, else "ok" and how many calls were compared.
 *
 *     both [threads] */
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The elements of a call: plain ints, or pairs of ints that a user's operation combines in order. */
typedef struct {
    MPI_Datatype type;
    MPI_Op op;
    const char *name;
    int ints; /* in one element */
} elements;

typedef struct {
    collwise_collective kind;
    collwise_call call;
} one_call;

typedef struct {
    long compared, wrong;
} tally;

#define CALL(P, made, c)                                                                                               \
    switch (made) {                                                                                                    \
    case COLLWISE_BCAST:                                                                                               \
        return P##MPI_Bcast((c)->receive, (c)->receive_count, (c)->receive_type, (c)->root, (c)->comm);                \
    case COLLWISE_GATHER:                                                                                              \
        return P##MPI_Gather((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_count,             \
                             (c)->receive_type, (c)->root, (c)->comm);                                                 \
    case COLLWISE_GATHERV:                                                                                             \
        return P##MPI_Gatherv((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_counts,           \
                              (c)->receive_displacements, (c)->receive_type, (c)->root, (c)->comm);                    \
    case COLLWISE_SCATTER:                                                                                             \
        return P##MPI_Scatter((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_count,            \
                              (c)->receive_type, (c)->root, (c)->comm);                                                \
    case COLLWISE_SCATTERV:                                                                                            \
        return P##MPI_Scatterv((c)->send, (c)->send_counts, (c)->send_displacements, (c)->send_type, (c)->receive,     \
                               (c)->receive_count, (c)->receive_type, (c)->root, (c)->comm);                           \
    case COLLWISE_ALLGATHER:                                                                                           \
        return P##MPI_Allgather((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_count,          \
                                (c)->receive_type, (c)->comm);                                                         \
    case COLLWISE_ALLGATHERV:                                                                                          \
        return P##MPI_Allgatherv((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_counts,        \
                                 (c)->receive_displacements, (c)->receive_type, (c)->comm);                            \
    case COLLWISE_ALLTOALL:                                                                                            \
        return P##MPI_Alltoall((c)->send, (c)->send_count, (c)->send_type, (c)->receive, (c)->receive_count,           \
                               (c)->receive_type, (c)->comm);                                                          \
    case COLLWISE_ALLTOALLV:                                                                                           \
        return P##MPI_Alltoallv((c)->send, (c)->send_counts, (c)->send_displacements, (c)->send_type, (c)->receive,    \
                                (c)->receive_counts, (c)->receive_displacements, (c)->receive_type, (c)->comm);        \
    case COLLWISE_BARRIER:                                                                                             \
        return P##MPI_Barrier((c)->comm);                                                                              \
    case COLLWISE_REDUCE:                                                                                              \
        return P##MPI_Reduce((c)->send, (c)->receive, (c)->receive_count, (c)->receive_type, (c)->op, (c)->root,       \
                             (c)->comm);                                                                               \
    case COLLWISE_ALLREDUCE:                                                                                           \
        return P##MPI_Allreduce((c)->send, (c)->receive, (c)->receive_count, (c)->receive_type, (c)->op, (c)->comm);   \
    case COLLWISE_REDUCE_SCATTER:                                                                                      \
        return P##MPI_Reduce_scatter((c)->send, (c)->receive, (c)->receive_counts, (c)->receive_type, (c)->op,         \
                                     (c)->comm);                                                                       \
    case COLLWISE_REDUCE_SCATTER_BLOCK:                                                                                \
        return P##MPI_Reduce_scatter_block((c)->send, (c)->receive, (c)->receive_count, (c)->receive_type, (c)->op,    \
                                           (c)->comm);                                                                 \
    case COLLWISE_SCAN:                                                                                                \
        return P##MPI_Scan((c)->send, (c)->receive, (c)->receive_count, (c)->receive_type, (c)->op, (c)->comm);        \
    case COLLWISE_EXSCAN:                                                                                              \
        return P##MPI_Exscan((c)->send, (c)->receive, (c)->receive_count, (c)->receive_type, (c)->op, (c)->comm);      \
    default:                                                                                                           \
        return MPI_ERR_OTHER;                                                                                          \
    }

static int by_mpi(const one_call *made) { CALL(, made->kind, &made->call) }
static int by_pmpi(const one_call *made) { CALL(P, made->kind, &made->call) }

static int is_rooted(collwise_collective kind) { return kind <= COLLWISE_SCATTERV || kind == COLLWISE_REDUCE; }

/* Pairs (a, b) as functions x -> a x + b, one after the other: associative, not commutative, exact in unsigned. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    unsigned *left = in, *right = inout;
    for (int i = 0; i < *count; i++) {
        unsigned a = left[2 * i] * right[2 * i], b = left[2 * i] * right[2 * i + 1] + left[2 * i + 1];
        right[2 * i] = a;
        right[2 * i + 1] = b;
    }
}

/* Sets MPI_IN_PLACE where the arguments of a collective may have it. Other processes than the root leave out the
 * arguments that count at the root only. */
static void put_in_place(one_call *made, int rank) {
    collwise_call *call = &made->call;
    int is_root = rank == call->root;
    switch (made->kind) {
    case COLLWISE_BCAST:
    case COLLWISE_BARRIER:
        return;
    case COLLWISE_SCATTER:
    case COLLWISE_SCATTERV:
        if (is_root) {
            call->receive = MPI_IN_PLACE;
        } else {
            call->send = NULL;
            call->send_count = -1;
            call->send_counts = call->send_displacements = NULL;
            call->send_type = MPI_DATATYPE_NULL;
        }
        return;
    case COLLWISE_GATHER:
    case COLLWISE_GATHERV:
        if (is_root) {
            call->send = MPI_IN_PLACE;
        } else {
            call->receive = NULL;
            call->receive_count = -1;
            call->receive_counts = call->receive_displacements = NULL;
            call->receive_type = MPI_DATATYPE_NULL;
        }
        return;
    case COLLWISE_REDUCE:
        if (is_root) {
            call->send = MPI_IN_PLACE;
        } else {
            call->receive = NULL;
        }
        return;
    default:
        call->send = MPI_IN_PLACE;
    }
}

/* The part of the receive buffer that MPI defines. The first process's exscan is undefined, and in place a
 * reduce_scatter may end with anything behind the process's own block. SimGrid's own scans (3.32, 4.1) are wrong for
 * operations that do not commute. */
static size_t defined_ints(const one_call *made, const elements *of, size_t ints, int in_place, int rank) {
#ifdef SMPI_SHARED_MALLOC
    if ((made->kind == COLLWISE_SCAN || made->kind == COLLWISE_EXSCAN) && of->ints > 1) {
        return 0;
    }
#endif
    if (made->kind == COLLWISE_EXSCAN && rank == 0) {
        return 0;
    }
    if (in_place && made->kind == COLLWISE_REDUCE_SCATTER) {
        return (size_t)(made->call.receive_counts[rank] * of->ints);
    }
    if (in_place && made->kind == COLLWISE_REDUCE_SCATTER_BLOCK) {
        return (size_t)(made->call.receive_count * of->ints);
    }
    return ints;
}

/* Both calls on the same data; `ints` is the room in each buffer. */
static void compare(tally *found, one_call made, const elements *of, size_t ints, int in_place, int procs, int rank) {
    int *send = malloc(ints * sizeof *send), *first = malloc(ints * sizeof *first);
    int *second = malloc(ints * sizeof *second);
    for (size_t i = 0; i < ints; i++) {
        send[i] = (int)(i * 7 + (size_t)rank * 1001 + 1) % 4093;
        first[i] = second[i] = (int)(i * 5 + (size_t)rank * 501 + 3) % 4091;
    }
    made.call.send = send;
    made.call.receive = first;
    one_call again = made;
    again.call.receive = second;
    if (in_place) {
        put_in_place(&made, rank);
        put_in_place(&again, rank);
    }
    int status = by_mpi(&made), expected = by_pmpi(&again);
    found->compared++;
    if (status != expected ||
        memcmp(first, second, defined_ints(&made, of, ints, in_place, rank) * sizeof *first) != 0) {
        found->wrong++;
        printf("different: collective %d, %s, count %d, root %d, %s, rank %d of %d\n", (int)made.kind, of->name,
               made.call.receive_count, made.call.root, in_place ? "in place" : "not in place", rank, procs);
    }
    free(send);
    free(first);
    free(second);
}

static void compare_collective(tally *found, collwise_collective kind, const elements *of, int count, int root,
                               MPI_Comm comm) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int *counts = malloc((size_t)procs * sizeof *counts), *places = malloc((size_t)procs * sizeof *places);
    int *to_me = malloc((size_t)procs * sizeof *to_me);
    for (int i = 0; i < procs; i++) {
        counts[i] = count + i % 3;
        to_me[i] = count + rank % 3;
        places[i] = i * (count + 3);
    }
    int is_vector = kind == COLLWISE_GATHERV || kind == COLLWISE_SCATTERV || kind == COLLWISE_ALLGATHERV;
    one_call made = {kind,
                     {.send_count = is_vector ? counts[rank] : count,
                      .send_counts = counts,
                      .send_displacements = places,
                      .send_type = of->type,
                      .receive_count = is_vector ? counts[rank] : count,
                      .receive_counts = kind == COLLWISE_ALLTOALLV ? to_me : counts,
                      .receive_displacements = places,
                      .receive_type = of->type,
                      .op = of->op,
                      .root = root,
                      .comm = comm}};
    size_t ints = (size_t)(procs * (count + 3) + 3) * (size_t)of->ints + 8;
    compare(found, made, of, ints, 0, procs, rank);
    /* In place, alltoallv wants counts that are alike in both directions, and MPICH 4.0's own reduce crashes at some
     * roots. */
    if (kind != COLLWISE_ALLTOALLV && (kind != COLLWISE_REDUCE || (root == 0 && of->ints == 1))) {
        compare(found, made, of, ints, 1, procs, rank);
    }
    free(counts);
    free(places);
    free(to_me);
}

static void compare_all(tally *found, const elements *of, MPI_Comm comm) {
    static const int counts[] = {0, 1, 5, 700};
    int procs;
    MPI_Comm_size(comm, &procs);
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            compare_collective(found, (collwise_collective)kind, of, counts[i], 0, comm);
            if (is_rooted((collwise_collective)kind)) {
                compare_collective(found, (collwise_collective)kind, of, counts[i], procs - 1, comm);
            }
        }
    }
}

/* Communicators that come and go, two at a time. */
static void compare_split(tally *found, const elements *of) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 4; round++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, (rank + round) % 2, -rank, &half);
        compare_all(found, of, half);
        MPI_Comm_free(&half);
    }
}

/* Arguments that are wrong on all processes: the same error as MPI's own, and no hang. */
static void compare_errors(tally *found) {
    MPI_Comm comm;
    int data = 0, status[3], expected[3];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    status[0] = MPI_Bcast(&data, -1, MPI_INT, 0, comm);
    expected[0] = PMPI_Bcast(&data, -1, MPI_INT, 0, comm);
    status[1] = MPI_Bcast(&data, 1, MPI_INT, -7, comm);
    expected[1] = PMPI_Bcast(&data, 1, MPI_INT, -7, comm);
    status[2] = MPI_Bcast(&data, 1, MPI_DATATYPE_NULL, 0, comm);
    expected[2] = PMPI_Bcast(&data, 1, MPI_DATATYPE_NULL, 0, comm);
    for (int i = 0; i < 3; i++) {
        int class, expected_class;
        MPI_Error_class(status[i], &class);
        MPI_Error_class(expected[i], &expected_class);
        found->compared++;
        if (class != expected_class || class == MPI_SUCCESS) {
            found->wrong++;
            printf("different: error %d, class %d for %d\n", i, class, expected_class);
        }
    }
    MPI_Comm_free(&comm);
}

static void use_intercommunicator(tally *found) {
    int rank, procs;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    if (procs < 2) {
        return;
    }
    MPI_Comm half, both;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both);
    int mine = 1, theirs = 0, size;
    MPI_Comm_remote_size(both, &size);
    MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, both);
    found->compared++;
    if (theirs != size) {
        found->wrong++;
        printf("different: allreduce between groups, %d for %d\n", theirs, size);
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    int rank, provided = -1;
    if (argc == 2 && strcmp(argv[1], "threads") == 0) {
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    } else {
        MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Datatype pair;
    MPI_Op in_order;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &in_order);
    elements plain = {MPI_INT, MPI_SUM, "ints", 1}, pairs = {pair, in_order, "pairs in order", 2};
    tally found = {0, 0};
    compare_all(&found, &plain, MPI_COMM_WORLD);
    compare_all(&found, &pairs, MPI_COMM_WORLD);
    compare_all(&found, &plain, MPI_COMM_SELF);
    compare_split(&found, &plain);
#ifndef SMPI_SHARED_MALLOC /* has neither errors that return nor collectives between groups */
    compare_errors(&found);
    use_intercommunicator(&found);
#endif
    MPI_Op_free(&in_order);
    MPI_Type_free(&pair);
    long sums[2], mine[2] = {found.compared, found.wrong};
    PMPI_Allreduce(mine, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s %ld, threads %d\n", sums[1] == 0 ? "ok" : "wrong", sums[0], provided);
    }
    MPI_Finalize();
    return sums[1] != 0;
}
