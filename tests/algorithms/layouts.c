/* The cost of user buffers, and the fate of their datatypes.
 *
 *     layouts FEW MANY
 *
 * Each process prints one JSON record: the calls that copy or pack in an allgatherv of contiguous blocks with gaps, for
 * FEW and for MANY elements a block, and the first thing that was wrong. MPI_Pack and MPI_Unpack are counted here, and
 * collwise_copy by the linker's --wrap. */
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCS = 16, GAP = 3 };

/* Simulated processes may share this: each has a place of its own. */
static long calls[MAX_PROCS];

static void count(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    calls[rank]++;
}

int MPI_Pack(const void *buffer, int elements, MPI_Datatype type, void *packed, int bytes, int *position,
             MPI_Comm comm) {
    count();
    return PMPI_Pack(buffer, elements, type, packed, bytes, position, comm);
}

int MPI_Unpack(const void *packed, int bytes, int *position, void *buffer, int elements, MPI_Datatype type,
               MPI_Comm comm) {
    count();
    return PMPI_Unpack(packed, bytes, position, buffer, elements, type, comm);
}

void __real_collwise_copy(char *to, const char *from, size_t bytes);
void __wrap_collwise_copy(char *to, const char *from, size_t bytes);

void __wrap_collwise_copy(char *to, const char *from, size_t bytes) {
    count();
    __real_collwise_copy(to, from, bytes);
}

/* Blocks of `elements` chars with a gap behind each; true if all of them arrive and the gaps stay. */
static int gather_with_gaps(int elements, int rank, int procs) {
    int counts[MAX_PROCS], places[MAX_PROCS];
    size_t bytes = (size_t)procs * (size_t)(elements + GAP);
    char *all = malloc(bytes), *expected = malloc(bytes);
    memset(all, -1, bytes);
    memset(expected, -1, bytes);
    for (int i = 0; i < procs; i++) {
        counts[i] = elements;
        places[i] = i * (elements + GAP);
        memset(expected + places[i], i, (size_t)elements);
    }
    memset(all + places[rank], rank, (size_t)elements);
    collwise_call call = {.send = MPI_IN_PLACE,
                          .receive = all,
                          .receive_counts = counts,
                          .receive_displacements = places,
                          .receive_type = MPI_CHAR,
                          .comm = MPI_COMM_WORLD};
    collwise_run(collwise_find("allgatherv", "ring"), &call, (collwise_parameters){0});
    int right = memcmp(all, expected, bytes) == 0;
    free(all);
    free(expected);
    return right;
}

/* A broadcast of ours with a type made of another, then MPI's with the other one. */
static int inner_type_stays_usable(void) {
    int data[6] = {0};
    MPI_Datatype inner, outer;
    MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
    MPI_Type_commit(&inner);
    MPI_Type_dup(inner, &outer);
    collwise_call call = {.receive = data, .receive_count = 1, .receive_type = outer, .comm = MPI_COMM_WORLD};
    collwise_run(collwise_find("bcast", "linear"), &call, (collwise_parameters){0});
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int status = MPI_Bcast(data, 1, inner, 0, MPI_COMM_WORLD);
    MPI_Type_free(&inner);
    MPI_Type_free(&outer);
    return status == MPI_SUCCESS;
}

static long calls_for(int elements, int rank, int procs, const char **wrong) {
    calls[rank] = 0;
    *wrong = gather_with_gaps(elements, rank, procs) ? *wrong : "a wrong byte";
    return calls[rank];
}

int main(int argc, char **argv) {
    int rank, procs;
    const char *wrong = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    if (argc != 3 || procs > MAX_PROCS) {
        fprintf(stderr, "usage: layouts FEW MANY, on up to %d processes\n", MAX_PROCS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long few = calls_for(atoi(argv[1]), rank, procs, &wrong);
    long many = calls_for(atoi(argv[2]), rank, procs, &wrong);
    wrong = inner_type_stays_usable() ? wrong : "the inner type is freed";
    printf("{\"rank\": %d, \"few\": %ld, \"many\": %ld, \"wrong\": \"%s\"}\n", rank, few, many, wrong);
    MPI_Finalize();
    return 0;
}
