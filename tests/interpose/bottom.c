/* Collectives on data at MPI_BOTTOM, whose datatypes have absolute addresses and holes, against PMPI's on plain ints:
 * the results must be the same, and nothing else be written. Prints how many calls were compared. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An element is the ints FIRST and SECOND of INTS. */
enum { INTS = 4, FIRST = 1, SECOND = 3, ROOM = 64, COUNT = 3, ANY = -9 };

static int *sent, *received; /* in elements */
static int flat_sent[2 * ROOM], flat_received[2 * ROOM];
static int rank, procs, compared, failures;
static MPI_Aint base; /* of the type that a reduction has */

static MPI_Aint address_of(const int *memory) {
    MPI_Aint address;
    MPI_Get_address((void *)memory, &address);
    return address;
}

static MPI_Datatype type_at(const int *memory) {
    MPI_Aint start = address_of(memory);
    MPI_Aint places[] = {start + FIRST * (MPI_Aint)sizeof(int), start + SECOND * (MPI_Aint)sizeof(int)};
    int lengths[] = {1, 1};
    MPI_Datatype made, resized;
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &made);
    MPI_Type_create_resized(made, start, INTS * sizeof(int), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&made);
    return resized;
}

/* Adds elements whose data counts from `base`. */
static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) {
        const int *from = (const int *)((uintptr_t)in + (uintptr_t)base) + INTS * i;
        int *to = (int *)((uintptr_t)inout + (uintptr_t)base) + INTS * i;
        to[FIRST] += from[FIRST];
        to[SECOND] += from[SECOND];
    }
}

static int value(int index, int salt) { return (index * 7 + salt * 13 + rank * 101) % 997; }

static void fill(void) {
    compared++;
    for (int i = 0; i < INTS * ROOM; i++) {
        sent[i] = value(i, compared);
        received[i] = value(i, compared + 500);
    }
    for (int i = 0; i < ROOM; i++) {
        for (int j = 0; j < 2; j++) {
            int at = INTS * i + (j == 0 ? FIRST : SECOND);
            flat_sent[2 * i + j] = sent[at];
            flat_received[2 * i + j] = received[at];
        }
    }
}

static int is_right(int i) {
    int place = i % INTS, element = i / INTS;
    int expected = place == FIRST    ? flat_received[2 * element]
                   : place == SECOND ? flat_received[2 * element + 1]
                                     : value(i, compared + 500);
    return received[i] == expected;
}

static void check(const char *what, int elements) {
    for (int i = 0; i < INTS * elements; i++) {
        if (!is_right(i)) {
            failures++;
            printf("%s: int %d on rank %d of %d\n", what, i, rank, procs);
            return;
        }
    }
}

static void compare_moves(void) {
    MPI_Datatype in = type_at(sent), out = type_at(received);
    MPI_Comm comm = MPI_COMM_WORLD;
    void *bottom = MPI_BOTTOM;
    int counts[ROOM], places[ROOM], flat_counts[ROOM], flat_places[ROOM];
    for (int i = 0; i < procs; i++) {
        counts[i] = 1 + i % COUNT;
        places[i] = i * COUNT;
        flat_counts[i] = 2 * counts[i];
        flat_places[i] = 2 * places[i];
    }
    for (int root = 0; root < procs; root++) {
        fill();
        MPI_Bcast(bottom, COUNT, out, root, comm);
        PMPI_Bcast(flat_received, 2 * COUNT, MPI_INT, root, comm);
        check("bcast", ROOM);
        fill();
        MPI_Gather(bottom, COUNT, in, bottom, COUNT, out, root, comm);
        PMPI_Gather(flat_sent, 2 * COUNT, MPI_INT, flat_received, 2 * COUNT, MPI_INT, root, comm);
        check("gather", ROOM);
        fill();
        MPI_Gatherv(bottom, counts[rank], in, bottom, counts, places, out, root, comm);
        PMPI_Gatherv(flat_sent, 2 * counts[rank], MPI_INT, flat_received, flat_counts, flat_places, MPI_INT, root,
                     comm);
        check("gatherv", ROOM);
        fill();
        MPI_Scatter(bottom, COUNT, in, bottom, COUNT, out, root, comm);
        PMPI_Scatter(flat_sent, 2 * COUNT, MPI_INT, flat_received, 2 * COUNT, MPI_INT, root, comm);
        check("scatter", ROOM);
    }
    fill();
    MPI_Allgather(bottom, COUNT, in, bottom, COUNT, out, comm);
    PMPI_Allgather(flat_sent, 2 * COUNT, MPI_INT, flat_received, 2 * COUNT, MPI_INT, comm);
    check("allgather", ROOM);
    fill();
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bottom, COUNT, out, comm);
    PMPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, flat_received, 2 * COUNT, MPI_INT, comm);
    check("allgather in place", ROOM);
    fill();
    MPI_Alltoall(bottom, COUNT, in, bottom, COUNT, out, comm);
    PMPI_Alltoall(flat_sent, 2 * COUNT, MPI_INT, flat_received, 2 * COUNT, MPI_INT, comm);
    check("alltoall", ROOM);
    MPI_Type_free(&in);
    MPI_Type_free(&out);
}

/* In place, since both buffers would have the one type. */
static void compare_reductions(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Op op;
    MPI_Datatype type = type_at(received);
    int counts[ROOM], flat_counts[ROOM];
    for (int i = 0; i < procs; i++) {
        counts[i] = 1 + i % COUNT;
        flat_counts[i] = 2 * counts[i];
    }
    MPI_Op_create(add, 1, &op);
    base = address_of(received);
    for (int root = 0; root < procs; root++) {
        int at_root = rank == root;
        fill();
        MPI_Reduce(at_root ? MPI_IN_PLACE : MPI_BOTTOM, at_root ? MPI_BOTTOM : NULL, COUNT, type, op, root, comm);
        PMPI_Reduce(at_root ? MPI_IN_PLACE : flat_received, flat_received, 2 * COUNT, MPI_INT, MPI_SUM, root, comm);
        check("reduce", ROOM);
    }
    fill();
    MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, COUNT, type, op, comm);
    PMPI_Allreduce(MPI_IN_PLACE, flat_received, 2 * COUNT, MPI_INT, MPI_SUM, comm);
    check("allreduce", ROOM);
    fill();
    MPI_Scan(MPI_IN_PLACE, MPI_BOTTOM, COUNT, type, op, comm);
    PMPI_Scan(MPI_IN_PLACE, flat_received, 2 * COUNT, MPI_INT, MPI_SUM, comm);
    check("scan", ROOM);
    fill();
    MPI_Exscan(MPI_IN_PLACE, MPI_BOTTOM, COUNT, type, op, comm);
    PMPI_Exscan(MPI_IN_PLACE, flat_received, 2 * COUNT, MPI_INT, MPI_SUM, comm);
    check("exscan", rank > 0 ? ROOM : 0); /* the first process's is undefined */
    fill();
    MPI_Reduce_scatter(MPI_IN_PLACE, MPI_BOTTOM, counts, type, op, comm);
    PMPI_Reduce_scatter(MPI_IN_PLACE, flat_received, flat_counts, MPI_INT, MPI_SUM, comm);
    check("reduce_scatter", counts[rank]); /* anything may be behind the own block */
    fill();
    MPI_Reduce_scatter_block(MPI_IN_PLACE, MPI_BOTTOM, COUNT, type, op, comm);
    PMPI_Reduce_scatter_block(MPI_IN_PLACE, flat_received, 2 * COUNT, MPI_INT, MPI_SUM, comm);
    check("reduce_scatter_block", COUNT);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
}

int main(int argc, char **argv) {
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    sent = malloc(INTS * ROOM * sizeof *sent);
    received = malloc(INTS * ROOM * sizeof *received);
    compare_moves();
    compare_reductions();
    PMPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) {
        printf("ok %d\n", compared);
    }
    free(sent);
    free(received);
    MPI_Finalize();
    return failures != 0;
}
