/* Gather up an in-order binomial tree. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:            v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P,
 *                               smallest k first
 *     parent of v:              v without its lowest bit
 *     subtree of child v + 2^k: v + 2^k to v + 2^(k+1) - 1, whose blocks the child sends to v
 *
 * A child of another process than the root tells it before how many bytes that are, since only the root knows all
 * sizes. With m for the average block:
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

#include <stdlib.h>

static void tell_parent(size_t bytes, const collwise_tree *tree, MPI_Comm comm) {
    if (tree->parent != tree->root) {
        collwise_send((const char *)&bytes, sizeof bytes, tree->parent, comm);
    }
}

/* starts[i] is where the blocks of child i begin, behind the own one; the last one is the end of all. */
static void send_subtree(const char *mine, size_t my_bytes, const collwise_tree *tree, MPI_Comm comm) {
    int children = tree->child_count;
    size_t *starts = collwise_allocate(((size_t)children + 1) * sizeof *starts, comm);
    starts[0] = my_bytes;
    for (int child = 0; child < children; child++) {
        size_t bytes;
        collwise_receive((char *)&bytes, sizeof bytes, collwise_tree_child(tree, child), comm);
        starts[child + 1] = starts[child] + bytes;
    }
    tell_parent(starts[children], tree, comm);
    char *blocks = collwise_scratch(starts[children], comm);
    collwise_copy(blocks, mine, my_bytes);
    for (int child = 0; child < children; child++) {
        collwise_receive(blocks + starts[child], starts[child + 1] - starts[child], collwise_tree_child(tree, child),
                         comm);
    }
    collwise_send(blocks, starts[children], tree->parent, comm);
    collwise_scratch_free(blocks);
    free(starts);
}

/* The start of a virtual rank's block in the order of virtual ranks; for P, the end of all blocks. */
static size_t virtual_start(const size_t *offsets, const collwise_tree *tree, int virtual_rank) {
    int rank = tree->root + virtual_rank;
    size_t until_last_rank = offsets[tree->procs] - offsets[tree->root];
    return rank < tree->procs ? offsets[rank] - offsets[tree->root] : until_last_rank + offsets[rank - tree->procs];
}

static void receive_all(char *all, const size_t *offsets, const collwise_tree *tree, MPI_Comm comm) {
    size_t bytes = offsets[tree->procs];
    char *blocks = tree->root == 0 ? all : collwise_scratch(bytes, comm);
    for (int child = 0; child < tree->child_count; child++) {
        int first = 1 << child, end = first + collwise_tree_child_size(tree, child);
        size_t start = virtual_start(offsets, tree, first);
        collwise_receive(blocks + start, virtual_start(offsets, tree, end) - start, collwise_tree_child(tree, child),
                         comm);
    }
    if (tree->root != 0) {
        size_t behind = offsets[tree->root + 1], own = behind - offsets[tree->root];
        collwise_copy(all + behind, blocks + own, bytes - behind);
        collwise_copy(all, blocks + own + bytes - behind, offsets[tree->root]);
        collwise_scratch_free(blocks);
    }
}

void collwise_gatherv_binomial(const char *mine, size_t my_bytes, char *all, const size_t *offsets, int root,
                               MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    if (tree.parent < 0) {
        receive_all(all, offsets, &tree, comm);
    } else if (tree.child_count > 0) {
        send_subtree(mine, my_bytes, &tree, comm);
    } else {
        tell_parent(my_bytes, &tree, comm);
        collwise_send(mine, my_bytes, tree.parent, comm);
    }
}
