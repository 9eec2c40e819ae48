/* Objections of mock-ups to messages of any size, of which none is made: they object if and only if the data of all
 * processes together has 2 GiB or more, or the extra memory that the paper's table 1 gives is more than there is.
 * Prints "ok" and how many were asked for, or what is wrong. */
#include "collwise.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 24 }; /* bytes of an element of a derived type */

static int procs;
static long asked, failures;

static int has_blocks(collwise_collective kind) {
    return kind == COLLWISE_GATHER || kind == COLLWISE_SCATTER || kind == COLLWISE_ALLGATHER ||
           kind == COLLWISE_ALLTOALL || kind == COLLWISE_REDUCE_SCATTER_BLOCK;
}

static void check(int is_right, const collwise_algorithm *algorithm, int64_t count, int64_t bytes, const char *said) {
    asked++;
    if (!is_right) {
        failures++;
        printf("%s of %lld elements of %lld bytes: %s\n", algorithm->name, (long long)count, (long long)bytes,
               said == NULL ? "no objection" : said);
    }
}

static void check_count(const collwise_algorithm *algorithm, int64_t count, MPI_Datatype type, int64_t bytes) {
    collwise_call call = {.send_count = (int)count,
                          .send_type = type,
                          .receive_count = (int)count,
                          .receive_type = type,
                          .op = MPI_SUM,
                          .comm = MPI_COMM_WORLD};
    int64_t message = count * bytes, all = message * (has_blocks(algorithm->kind) ? procs : 1);
    int reduces = algorithm->kind >= COLLWISE_REDUCE;
    int64_t padding = procs * (reduces ? bytes : 1);
    collwise_memory extra = collwise_extra_memory(algorithm, (size_t)message, reduces ? (size_t)bytes : 1, procs);
    if (algorithm->kind == COLLWISE_SCAN) { /* not in table 1: some processes may be in place */
        extra.message_bytes = (size_t)message;
    }
    collwise_limit_memory((collwise_memory){SIZE_MAX, SIZE_MAX});
    const char *said = collwise_objection(algorithm, &call);
    if (all + padding > INT_MAX) {
        check(said != NULL && strcmp(said, "needs messages of less than 2 GiB in all") == 0, algorithm, count, bytes,
              said);
        return;
    }
    check(said == NULL, algorithm, count, bytes, said);
    if (extra.message_bytes > 0) {
        collwise_limit_memory((collwise_memory){extra.message_bytes - 1, SIZE_MAX});
        said = collwise_objection(algorithm, &call);
        check(said != NULL && strcmp(said, "needs a larger message buffer") == 0, algorithm, count, bytes, said);
    }
    if (extra.integer_bytes > 0) {
        collwise_limit_memory((collwise_memory){SIZE_MAX, extra.integer_bytes - 1});
        said = collwise_objection(algorithm, &call);
        check(said != NULL && strcmp(said, "needs a larger integer buffer") == 0, algorithm, count, bytes, said);
    }
    collwise_limit_memory(extra);
    said = collwise_objection(algorithm, &call);
    check(said == NULL, algorithm, count, bytes, said);
}

static void check_type(MPI_Datatype type, int64_t bytes) {
    for (const collwise_algorithm *algorithm = collwise_registry; algorithm->collective != NULL; algorithm++) {
        if (algorithm->guideline == NULL) {
            continue;
        }
        int64_t most = INT_MAX / bytes / (has_blocks(algorithm->kind) ? procs : 1);
        for (int64_t step = 1; step < INT_MAX; step *= 2) {
            check_count(algorithm, step, type, bytes);
        }
        for (int64_t around = -2 * procs; around <= 2 * procs; around++) {
            if (most + around <= INT_MAX) {
                check_count(algorithm, most + around, type, bytes);
            }
        }
        check_count(algorithm, INT_MAX, type, bytes);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Datatype piece;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
    MPI_Type_commit(&piece);
    check_type(MPI_CHAR, 1);
    check_type(MPI_DOUBLE, sizeof(double));
    check_type(piece, PIECE);
    MPI_Type_free(&piece);
    if (failures == 0 && rank == 0) {
        printf("ok %ld\n", asked);
    }
    MPI_Finalize();
    return failures != 0;
}
