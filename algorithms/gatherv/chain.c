/* Gather along a pipeline of all processes that ends at the root. The virtual rank is v = (rank - root) mod P, the
 * parent of v is v - 1. Every process sends its own block to its parent, then those of the processes behind it, v + 1,
 * v + 2, ..., while it receives the next one. The sizes are sent before, since only the root knows them all. With m for
 * the average block:
 *     T = (P - 2) alpha + (P - 1) (alpha + m beta) */
#include "internal.h"

#include <stdlib.h>

/* Receives the sizes of the blocks of all processes behind, and sends these and its own to the parent. */
static size_t *pass_on_sizes(size_t my_bytes, const collwise_tree *chain, MPI_Comm comm) {
    size_t behind = (size_t)(chain->procs - 1 - chain->virtual_rank);
    size_t *sizes = collwise_allocate((behind + 1) * sizeof *sizes, comm);
    sizes[0] = my_bytes;
    if (behind > 0) {
        collwise_receive((char *)(sizes + 1), behind * sizeof *sizes, collwise_tree_child(chain, 0), comm);
    }
    if (chain->parent != chain->root) {
        collwise_send((const char *)sizes, (behind + 1) * sizeof *sizes, chain->parent, comm);
    }
    return sizes;
}

static void pass_on_blocks(const char *mine, size_t my_bytes, const collwise_tree *chain, MPI_Comm comm) {
    int behind = chain->procs - 1 - chain->virtual_rank;
    size_t *sizes = pass_on_sizes(my_bytes, chain, comm);
    size_t room = collwise_largest(sizes + 1, behind);
    char *buffers[] = {collwise_scratch(room, comm), collwise_scratch(room, comm)};
    const char *block = mine;
    for (int i = 0; i < behind; i++) {
        collwise_sendrecv(block, sizes[i], chain->parent, buffers[i % 2], sizes[i + 1], collwise_tree_child(chain, 0),
                          comm);
        block = buffers[i % 2];
    }
    collwise_send(block, sizes[behind], chain->parent, comm);
    collwise_scratch_free(buffers[0]);
    collwise_scratch_free(buffers[1]);
    free(sizes);
}

void collwise_gatherv_chain(const char *mine, size_t my_bytes, char *all, const size_t *offsets, int root,
                            MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree chain = collwise_tree_of(COLLWISE_CHAIN, root, comm, 0);
    if (chain.parent >= 0) {
        pass_on_blocks(mine, my_bytes, &chain, comm);
        return;
    }
    for (int place = 1; place < chain.procs; place++) {
        int rank = (root + place) % chain.procs;
        collwise_receive(all + offsets[rank], offsets[rank + 1] - offsets[rank], collwise_tree_child(&chain, 0), comm);
    }
}
