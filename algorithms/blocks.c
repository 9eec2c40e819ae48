/* One block a process in a user buffer, seen as packed blocks in rank order. */
#include "internal.h"

static size_t elements_of(const collwise_blocks *blocks, int rank) {
    return (size_t)(blocks->counts != NULL ? blocks->counts[rank] : blocks->count);
}

/* The start of the block, in elements from the start of the buffer. */
static ptrdiff_t start_of(const collwise_blocks *blocks, int rank) {
    return blocks->displacements != NULL ? blocks->displacements[rank] : (ptrdiff_t)rank * blocks->count;
}

static char *place_of(const collwise_blocks *blocks, int rank) {
    return blocks->buffer + start_of(blocks, rank) * blocks->extent;
}

/* Whether the blocks follow one another without gaps; the first may start anywhere. */
static int lie_packed(const collwise_blocks *blocks) {
    ptrdiff_t next = start_of(blocks, 0);
    for (int rank = 0; rank < blocks->procs; rank++) {
        if (elements_of(blocks, rank) > 0 && start_of(blocks, rank) != next) {
            return 0;
        }
        next += (ptrdiff_t)elements_of(blocks, rank);
    }
    return collwise_is_contiguous(blocks->type);
}

collwise_blocks collwise_blocks_of(const void *buffer, int count, const int *counts, const int *displacements,
                                   MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low;
    collwise_blocks blocks = {.buffer = (char *)buffer,
                              .count = count,
                              .counts = counts,
                              .displacements = displacements,
                              .type = type,
                              .procs = collwise_size_of(comm),
                              .comm = comm};
    MPI_Type_get_extent(type, &low, &blocks.extent);
    blocks.element_bytes = collwise_element_bytes(type);
    blocks.offsets = collwise_sizes((size_t)blocks.procs + 1, comm);
    blocks.offsets[0] = 0;
    for (int rank = 0; rank < blocks.procs; rank++) {
        blocks.offsets[rank + 1] = blocks.offsets[rank] + elements_of(&blocks, rank) * blocks.element_bytes;
    }
    if (lie_packed(&blocks)) {
        blocks.data = place_of(&blocks, 0);
    } else {
        blocks.data = blocks.copy = collwise_scratch(blocks.offsets[blocks.procs], comm);
    }
    return blocks;
}

void collwise_blocks_pack(const collwise_blocks *blocks, int rank) {
    if (blocks->copy != NULL) {
        collwise_pack(blocks->data + blocks->offsets[rank], place_of(blocks, rank), elements_of(blocks, rank),
                      blocks->type, blocks->comm);
    }
}

void collwise_blocks_pack_all(const collwise_blocks *blocks) {
    for (int rank = 0; rank < blocks->procs; rank++) {
        collwise_blocks_pack(blocks, rank);
    }
}

void collwise_blocks_unpack_all(const collwise_blocks *blocks) {
    for (int rank = 0; rank < blocks->procs && blocks->copy != NULL; rank++) {
        collwise_unpack(blocks->data + blocks->offsets[rank], place_of(blocks, rank), elements_of(blocks, rank),
                        blocks->type, blocks->comm);
    }
}

void collwise_blocks_release(collwise_blocks *blocks) {
    collwise_scratch_free(blocks->copy);
    collwise_sizes_free(blocks->offsets);
    blocks->copy = NULL;
    blocks->offsets = NULL;
}
