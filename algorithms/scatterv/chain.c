/* Scatter along a pipeline of all processes that starts at the root. The virtual rank is v = (rank - root) mod P, the
 * child of v is v + 1. The root sends the block of the last process first. Every process sends on all blocks that it
 * receives but the last one, its own, while it receives the next one. The sizes are sent before, since only the root
 * knows them all. With m for the average block:
 *     T = (P - 2) alpha + (P - 1) (alpha + m beta) */
#include "internal.h"

#include <stdlib.h>

/* Sends the next process the sizes of all blocks that it will send on; sizes[i] is that of the i-th process behind. */
static void pass_on_sizes(const size_t *sizes, int behind, const collwise_tree *chain, MPI_Comm comm) {
    if (behind > 1) {
        collwise_send((const char *)(sizes + 2), (size_t)(behind - 1) * sizeof *sizes, collwise_tree_child(chain, 0),
                      comm);
    }
}

static void pass_on_blocks(char *mine, size_t my_bytes, const collwise_tree *chain, MPI_Comm comm) {
    int behind = chain->procs - 1 - chain->virtual_rank;
    size_t *sizes = collwise_allocate(((size_t)behind + 1) * sizeof *sizes, comm);
    sizes[0] = my_bytes;
    if (behind > 0) {
        collwise_receive((char *)(sizes + 1), (size_t)behind * sizeof *sizes, chain->parent, comm);
    }
    pass_on_sizes(sizes, behind, chain, comm);
    size_t room = collwise_largest(sizes + 1, behind);
    char *buffers[] = {collwise_scratch(room, comm), collwise_scratch(room, comm)};
    char *block = behind == 0 ? mine : buffers[behind % 2];
    collwise_receive(block, sizes[behind], chain->parent, comm);
    for (int i = behind; i > 0; i--) {
        char *next = i == 1 ? mine : buffers[(i - 1) % 2];
        collwise_sendrecv(block, sizes[i], collwise_tree_child(chain, 0), next, sizes[i - 1], chain->parent, comm);
        block = next;
    }
    collwise_scratch_free(buffers[0]);
    collwise_scratch_free(buffers[1]);
    free(sizes);
}

static void root_sends(const char *all, const size_t *offsets, const collwise_tree *chain, MPI_Comm comm) {
    int behind = chain->procs - 1;
    size_t *sizes = collwise_allocate((size_t)chain->procs * sizeof *sizes, comm);
    for (int place = 0; place <= behind; place++) {
        int rank = (chain->root + place) % chain->procs;
        sizes[place] = offsets[rank + 1] - offsets[rank];
    }
    pass_on_sizes(sizes, behind, chain, comm);
    for (int place = behind; place > 0; place--) {
        collwise_send(all + offsets[(chain->root + place) % chain->procs], sizes[place], collwise_tree_child(chain, 0),
                      comm);
    }
    free(sizes);
}

void collwise_scatterv_chain(const char *all, const size_t *offsets, char *mine, size_t my_bytes, int root,
                             MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree chain = collwise_tree_of(COLLWISE_CHAIN, root, comm, 0);
    if (chain.parent < 0) {
        root_sends(all, offsets, &chain, comm);
    } else {
        pass_on_blocks(mine, my_bytes, &chain, comm);
    }
}
