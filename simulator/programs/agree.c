/* Runs MPI's own collective and one of our algorithms on the same data, and compares the results.
 *
 *     agree COLLECTIVE ALGORITHM SEGMENT_BYTES FANOUT [MESSAGE_BYTES...]
 *
 * Both are called once with each size and, if the collective has a root, with each of two roots. Every process prints
 * one JSON record: how many cases there were, and in which of them its buffers differ. Sums are of whole numbers, which
 * are exact in any order. Besides the calls, only the private communicator is made, which sends messages, too: without
 * a size nothing else happens, so that these messages can be counted and subtracted. */
#include "workload.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "agree: %s %s\n", what, detail);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* A buffer with its size, so that all of it can be compared. */
typedef struct {
    size_t bytes;
    _Alignas(max_align_t) unsigned char data[];
} buffer;

static buffer *buffer_of(const void *data) {
    return (buffer *)((unsigned char *)(uintptr_t)data - offsetof(buffer, data));
}

/* Memory filled with whole numbers that differ between processes and between places. Buffers for sums of bytes, which
 * are not a whole number of doubles and one byte long, get small ones: Open MPI's sums of bytes stop at 255. */
static void *allocate_filled(size_t bytes) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer *made = malloc(sizeof *made + bytes);
    if (made == NULL) {
        return NULL;
    }
    made->bytes = bytes;
    for (size_t i = 0; i < bytes; i++) {
        made->data[i] = (unsigned char)((i * 31 + (size_t)rank * 7) * 2654435761u / 65536 % 8);
    }
    for (size_t i = 0; bytes % sizeof(double) == 1 && i + 1 < bytes; i += sizeof(double)) {
        double value = 1e9 * (rank + 1) + (double)i;
        memcpy(made->data + i, &value, sizeof value);
    }
    return made->data;
}

static void release_filled(void *data) { free(buffer_of(data)); }

static int same(const void *ours, const void *theirs) {
    return memcmp(buffer_of(ours)->data, buffer_of(theirs)->data, buffer_of(ours)->bytes) == 0;
}

/* Whether both calls leave the same bytes in this process's buffers. */
static int agree(const collwise_algorithm *algorithm, collwise_parameters with, size_t message_bytes, int root) {
    const workload_memory memory = {allocate_filled, release_filled};
    workload ours, theirs;
    if (!program_workload_make(&ours, algorithm->kind, message_bytes, root, MPI_COMM_WORLD, memory) ||
        !program_workload_make(&theirs, algorithm->kind, message_bytes, root, MPI_COMM_WORLD, memory)) {
        fail("out of", "memory");
    }
    const char *objection = collwise_objection(algorithm, &ours.call);
    if (objection != NULL) {
        fail(algorithm->name, objection);
    }
    program_workload_call_mpi(theirs.kind, &theirs.call, NULL);
    collwise_run(algorithm, &ours.call, with);
    int agreed = same(ours.call.send, theirs.call.send) && same(ours.call.receive, theirs.call.receive);
    program_workload_free(&ours);
    program_workload_free(&theirs);
    return agreed;
}

static size_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text == '\0' || *text == '-' || *end != '\0') {
        fail("not a whole number:", text);
    }
    return (size_t)value;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int procs, rank, cases = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const collwise_algorithm *algorithm = argc < 5 ? NULL : collwise_find(argv[1], argv[2]);
    if (algorithm == NULL) {
        fail("usage:", "agree COLLECTIVE ALGORITHM SEGMENT_BYTES FANOUT [MESSAGE_BYTES...]");
    }
    collwise_parameters with = {.part_bytes = number(argv[3]), .count = (int)number(argv[4])};
    collwise_private(MPI_COMM_WORLD);
    int roots = program_workload_is_rooted(algorithm->kind) && procs > 1 ? 2 : 1;
    char *wrong = calloc((size_t)argc * 64, 1);
    for (int i = 5; i < argc; i++) {
        for (int k = 0; k < roots; k++, cases++) {
            int root = k * (procs / 2);
            if (!agree(algorithm, with, number(argv[i]), root)) {
                sprintf(wrong + strlen(wrong), "%s[%zu, %d]", *wrong == '\0' ? "" : ", ", number(argv[i]), root);
            }
        }
    }
    printf("{\"rank\": %d, \"cases\": %d, \"wrong\": [%s]}\n", rank, cases, wrong);
    free(wrong);
    MPI_Finalize();
    return 0;
}
