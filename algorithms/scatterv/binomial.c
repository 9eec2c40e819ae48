/* Scatter down an in-order binomial tree. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:            v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P,
 *                               largest k first
 *     parent of v:              v without its lowest bit
 *     subtree of child v + 2^k: v + 2^k to v + 2^(k+1) - 1, whose blocks v sends to the child
 *
 * Before the blocks of its subtree, a child that has children itself receives where each of them begins, since only
 * the root knows their sizes. With m for the average block:
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

#include <stdlib.h>

/* starts[i] is where the block of the i-th process of the subtree begins; the last one is the end of all. */
static void send_to_children(const char *blocks, const size_t *starts, const collwise_tree *tree, MPI_Comm comm) {
    for (int child = tree->child_count - 1; child >= 0; child--) {
        int first = 1 << child, size = collwise_tree_child_size(tree, child), to = collwise_tree_child(tree, child);
        if (size > 1) {
            collwise_send((const char *)(starts + first), ((size_t)size + 1) * sizeof *starts, to, comm);
        }
        collwise_send(blocks + (starts[first] - starts[0]), starts[first + size] - starts[first], to, comm);
    }
}

/* Blocks in the order of virtual ranks, the root's first, and where they begin. */
static void put_in_virtual_order(char *blocks, size_t *starts, const char *all, const size_t *offsets, int procs,
                                 int root) {
    starts[0] = 0;
    for (int place = 0; place < procs; place++) {
        int rank = (root + place) % procs;
        starts[place + 1] = starts[place] + offsets[rank + 1] - offsets[rank];
    }
    collwise_copy(blocks, all + offsets[root], offsets[procs] - offsets[root]);
    collwise_copy(blocks + starts[procs - root], all, offsets[root]);
}

void collwise_scatterv_binomial(const char *all, const size_t *offsets, char *mine, size_t my_bytes, int root,
                                MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    if (tree.child_count == 0) {
        collwise_receive(mine, my_bytes, tree.parent, comm);
        return;
    }
    if (tree.parent < 0 && root == 0) {
        send_to_children(all, offsets, &tree, comm);
        return;
    }
    int size = collwise_tree_size(&tree);
    size_t *starts = collwise_allocate(((size_t)size + 1) * sizeof *starts, comm);
    if (tree.parent >= 0) {
        collwise_receive((char *)starts, ((size_t)size + 1) * sizeof *starts, tree.parent, comm);
    }
    size_t bytes = tree.parent < 0 ? offsets[tree.procs] : starts[size] - starts[0];
    char *blocks = collwise_scratch(bytes, comm);
    if (tree.parent < 0) {
        put_in_virtual_order(blocks, starts, all, offsets, tree.procs, root);
    } else {
        collwise_receive(blocks, bytes, tree.parent, comm);
        collwise_copy(mine, blocks, my_bytes);
    }
    send_to_children(blocks, starts, &tree, comm);
    collwise_scratch_free(blocks);
    free(starts);
}
