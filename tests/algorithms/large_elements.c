/* Elements whose bytes do not fit an int, by their size or by their extent.
 *
 *     large_elements sparse|contiguous|gapped
 *
 *     sparse      8 bytes, of which 4 lie 3 GiB behind the others: broadcast and allgather
 *     contiguous  more than 2 GiB: a broadcast, in which the other processes receive integers
 *     gapped      the same in two blocks with a gap: a broadcast
 *
 * Memory is one block that is mapped again and again, so that little of it is taken. Each process prints one JSON
 * record with what was wrong. */
#define _GNU_SOURCE
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The length of a block is no power of two: what is written at a wrong place differs from what belongs there. */
#define BLOCK_BYTES ((size_t)3 << 20)
#define LARGE_BYTES (((size_t)2 << 30) + 4 * 12345)
#define FAR_BYTES ((MPI_Aint)3 << 30)
#define GAP_BYTES 64

static void check(int is_right) {
    if (!is_right) {
        perror("large_elements");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The block, at every multiple of its length up to at least so many bytes. */
static unsigned char *mapped_again(size_t bytes) {
    size_t blocks = bytes / BLOCK_BYTES + 1;
    int file = memfd_create("block", 0);
    check(file >= 0 && ftruncate(file, (off_t)BLOCK_BYTES) == 0);
    unsigned char *memory =
        mmap(NULL, blocks * BLOCK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != MAP_FAILED);
    for (size_t i = 0; i < blocks; i++) {
        void *at = memory + i * BLOCK_BYTES;
        check(mmap(at, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == at);
    }
    close(file);
    return memory;
}

static unsigned char byte_of(size_t place) { return (unsigned char)(1 | place * 2654435761U >> 11); }

static void fill(unsigned char *block) {
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        block[i] = byte_of(i);
    }
}

static int is_filled(const unsigned char *block) {
    size_t i = 0;
    while (i < BLOCK_BYTES && block[i] == byte_of(i)) {
        i++;
    }
    return i == BLOCK_BYTES;
}

static MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype sparse(void) {
    MPI_Datatype both, type;
    MPI_Type_create_hindexed(2, (const int[]){1, 1}, (const MPI_Aint[]){0, FAR_BYTES}, MPI_INT, &both);
    MPI_Type_create_resized(both, 0, 2 * sizeof(int), &type);
    MPI_Type_free(&both);
    return committed(type);
}

static MPI_Datatype contiguous(void) {
    MPI_Datatype four, type;
    MPI_Type_contiguous(4, MPI_BYTE, &four);
    MPI_Type_contiguous((int)(LARGE_BYTES / 4), four, &type);
    MPI_Type_free(&four);
    return committed(type);
}

static MPI_Datatype gapped(void) {
    MPI_Datatype type;
    MPI_Type_vector(2, (int)(LARGE_BYTES / 2), (int)(LARGE_BYTES / 2) + GAP_BYTES, MPI_BYTE, &type);
    return committed(type);
}

/* Elements of different processes lie one behind the other. */
static const char *try_sparse(int rank, int procs) {
    MPI_Datatype type = sparse();
    size_t bytes = (size_t)FAR_BYTES + sizeof(int) * 2 * (size_t)procs;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(memory != (char *)MAP_FAILED);
    int *near = (int *)(void *)memory, *far = (int *)(void *)(memory + FAR_BYTES), wrong = 0;
    near[2 * rank] = rank + 1;
    far[2 * rank] = -rank - 1;
    collwise_call call = {
        .send = MPI_IN_PLACE, .receive = memory, .receive_count = 1, .receive_type = type, .comm = MPI_COMM_WORLD};
    collwise_run(collwise_find("allgather", "ring"), &call, (collwise_parameters){0});
    for (int i = 0; i < procs; i++) {
        wrong += near[2 * i] != i + 1 || far[2 * i] != -i - 1 || near[2 * i + 1] != 0 || far[2 * i + 1] != 0;
    }
    near[0] = far[0] = rank;
    collwise_run(collwise_find("bcast", "linear"), &call, (collwise_parameters){0});
    wrong += near[0] != 0 || far[0] != 0;
    munmap(memory, bytes);
    MPI_Type_free(&type);
    return wrong > 0 ? "a wrong integer" : "";
}

static const char *try_bcast(MPI_Datatype type, int is_received_as_integers, int rank) {
    unsigned char *memory = mapped_again(LARGE_BYTES + GAP_BYTES);
    if (rank == 0) {
        fill(memory);
    }
    int by_integers = is_received_as_integers && rank != 0;
    collwise_call call = {.receive = memory,
                          .receive_count = by_integers ? (int)(LARGE_BYTES / sizeof(int)) : 1,
                          .receive_type = by_integers ? MPI_INT : type,
                          .comm = MPI_COMM_WORLD};
    collwise_run(collwise_find("bcast", "chain"), &call, (collwise_parameters){.segment_bytes = (size_t)64 << 20});
    return is_filled(memory) ? "" : "a wrong byte";
}

int main(int argc, char **argv) {
    int rank, procs;
    const char *wrong = "no such kind";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    const char *kind = argc == 2 ? argv[1] : "";
    if (strcmp(kind, "sparse") == 0) {
        wrong = try_sparse(rank, procs);
    } else if (strcmp(kind, "contiguous") == 0) {
        MPI_Datatype type = contiguous();
        wrong = try_bcast(type, 1, rank);
        MPI_Type_free(&type);
    } else if (strcmp(kind, "gapped") == 0) {
        MPI_Datatype type = gapped();
        wrong = try_bcast(type, 0, rank);
        MPI_Type_free(&type);
    }
    printf("{\"rank\": %d, \"wrong\": \"%s\"}\n", rank, wrong);
    MPI_Finalize();
    return 0;
}
