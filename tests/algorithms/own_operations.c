/* Reductions by mock-ups with operations of the program, on elements with a gap behind each and without.
 *
 * For each mock-up of a reduction, type, operation and count the first process prints one JSON record: the objection,
 * or null; and if there was none, whether the result is right on all processes and the most elements that any of them
 * combined at once. Elements are pairs of integers: (a, b) stands for the map x -> a x + b. */
#include "collwise.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCS = 16, KEPT = 0x5A };

/* A pair lies at the start of its element. The extent is in bytes. */
typedef struct {
    const char *name;
    int extent;
    MPI_Datatype type;
} element_type;

static const element_type adjacent = {.name = "adjacent", .extent = 8}, padded = {.name = "padded", .extent = 12};
static const struct {
    const char *name;
    int commutes;
} operations[] = {{"composition", 0}, {"sum", 1}};

/* Simulated processes may share this: each has a place of its own. */
static int most[MAX_PROCS];

static uint32_t *pair_at(void *data, const element_type *type, int index) {
    return (uint32_t *)((char *)data + (ptrdiff_t)index * type->extent);
}

/* right = left, then right. */
static void combine(const uint32_t *left, uint32_t *right, int commutes) {
    if (commutes) {
        right[0] += left[0];
        right[1] += left[1];
    } else {
        right[1] += left[1] * right[0];
        right[0] *= left[0];
    }
}

static void combine_all(void *left, void *right, int length, MPI_Datatype handle, int commutes) {
    int rank;
    MPI_Aint low, extent;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    most[rank] = length > most[rank] ? length : most[rank];
    MPI_Type_get_extent(handle, &low, &extent);
    const element_type *type = extent == adjacent.extent ? &adjacent : &padded;
    for (int i = 0; i < length; i++) {
        combine(pair_at(left, type, i), pair_at(right, type, i), commutes);
    }
}

static void compose(void *left, void *right, int *length, MPI_Datatype *type) {
    combine_all(left, right, *length, *type, 0);
}

static void add(void *left, void *right, int *length, MPI_Datatype *type) {
    combine_all(left, right, *length, *type, 1);
}

static void contribution(uint32_t pair[2], int rank, int index) {
    pair[0] = (uint32_t)(2 * rank + 3 + index);
    pair[1] = (uint32_t)(rank * rank + 7 * index + 1);
}

/* Memory for `elements`, whose gaps have a known content. */
static char *vector(const element_type *type, int elements) {
    size_t bytes = (size_t)elements * (size_t)type->extent;
    return memset(malloc(bytes), KEPT, bytes);
}

static char *vector_of(const element_type *type, int elements, int rank) {
    char *made = vector(type, elements);
    for (int i = 0; i < elements; i++) {
        contribution(pair_at(made, type, i), rank, i);
    }
    return made;
}

/* What `elements` become that are the reduction of those from `first` on, of the processes up to `last`. */
static char *expectation(const element_type *type, int elements, int first, int last, int commutes) {
    char *made = vector(type, elements);
    for (int i = 0; i < elements; i++) {
        uint32_t *total = pair_at(made, type, i);
        contribution(total, last, first + i);
        for (int rank = last - 1; rank >= 0; rank--) {
            uint32_t before[2];
            contribution(before, rank, first + i);
            combine(before, total, commutes);
        }
    }
    return made;
}

static void run(const collwise_algorithm *algorithm, const element_type *type, int operation, int count) {
    int rank, procs, commutes = operations[operation].commutes;
    MPI_Op op;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Op_create(commutes ? add : compose, commutes, &op);
    int has_blocks = algorithm->kind == COLLWISE_REDUCE_SCATTER_BLOCK, is_scan = algorithm->kind == COLLWISE_SCAN;
    int root = procs - 1, has_result = algorithm->kind != COLLWISE_REDUCE || rank == root;
    char *sent = vector_of(type, count * (has_blocks ? procs : 1), rank), *received = vector(type, count);
    char *expected = expectation(type, count, has_blocks ? rank * count : 0, is_scan ? rank : procs - 1, commutes);
    collwise_call call = {.send = sent,
                          .receive = received,
                          .receive_count = count,
                          .receive_type = type->type,
                          .op = op,
                          .root = root,
                          .comm = MPI_COMM_WORLD};
    const char *objection = collwise_objection(algorithm, &call), *quote = objection == NULL ? "" : "\"";
    most[rank] = 0;
    if (objection == NULL) {
        collwise_run(algorithm, &call, (collwise_parameters){0});
    }
    int found[2] = {has_result && memcmp(received, expected, (size_t)count * (size_t)type->extent) != 0, most[rank]};
    MPI_Allreduce(MPI_IN_PLACE, found, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("{\"guideline\": \"%s\", \"type\": \"%s\", \"operation\": \"%s\", \"count\": %d, \"objection\": %s%s%s, "
               "\"right\": %s, \"most\": %d}\n",
               algorithm->guideline, type->name, operations[operation].name, count, quote,
               objection == NULL ? "null" : objection, quote, found[0] ? "false" : "true", found[1]);
    }
    free(sent);
    free(received);
    free(expected);
    MPI_Op_free(&op);
}

int main(int argc, char **argv) {
    int procs;
    element_type types[] = {adjacent, padded};
    MPI_Datatype pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    if (procs > MAX_PROCS) {
        fprintf(stderr, "own_operations runs on up to %d processes\n", MAX_PROCS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_contiguous(2, MPI_UINT32_T, &types[0].type);
    MPI_Type_contiguous(2, MPI_UINT32_T, &pair);
    MPI_Type_create_resized(pair, 0, padded.extent, &types[1].type);
    MPI_Type_commit(&types[0].type);
    MPI_Type_commit(&types[1].type);
    const int counts[] = {1, procs, 2 * procs + 1};
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        for (int i = 0; i < 12 && each->guideline != NULL && each->kind >= COLLWISE_REDUCE; i++) {
            run(each, &types[i / 6], i / 3 % 2, counts[i % 3]);
        }
    }
    MPI_Type_free(&pair);
    MPI_Type_free(&types[0].type);
    MPI_Type_free(&types[1].type);
    MPI_Finalize();
    return 0;
}
