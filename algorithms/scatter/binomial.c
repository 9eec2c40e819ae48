/* Scatter down an in-order binomial tree. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:            v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P,
 *                               largest k first
 *     parent of v:              v without its lowest bit
 *     subtree of child v + 2^k: v + 2^k to v + 2^(k+1) - 1, whose blocks v sends to the child
 *
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

/* The root sends the blocks in the order of virtual ranks, its own first. */
static void put_in_virtual_order(char *by_virtual_rank, const char *all, size_t block_bytes, int procs, int root) {
    size_t until_last_rank = (size_t)(procs - root) * block_bytes;
    collwise_copy(by_virtual_rank, all + (size_t)root * block_bytes, until_last_rank);
    collwise_copy(by_virtual_rank + until_last_rank, all, (size_t)root * block_bytes);
}

static void send_to_children(const char *blocks, size_t block_bytes, const collwise_tree *tree, MPI_Comm comm) {
    for (int child = tree->child_count - 1; child >= 0; child--) {
        collwise_send(blocks + ((size_t)1 << child) * block_bytes,
                      (size_t)collwise_tree_child_size(tree, child) * block_bytes, collwise_tree_child(tree, child),
                      comm);
    }
}

void collwise_scatter_binomial(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                               collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    if (tree.child_count == 0) {
        collwise_receive(mine, block_bytes, tree.parent, comm);
        return;
    }
    if (tree.parent < 0 && root == 0) {
        send_to_children(all, block_bytes, &tree, comm);
        return;
    }
    size_t subtree_bytes = (size_t)collwise_tree_size(&tree) * block_bytes;
    char *blocks = collwise_scratch(subtree_bytes, comm);
    if (tree.parent < 0) {
        put_in_virtual_order(blocks, all, block_bytes, tree.procs, root);
    } else {
        collwise_receive(blocks, subtree_bytes, tree.parent, comm);
        collwise_copy(mine, blocks, block_bytes);
    }
    send_to_children(blocks, block_bytes, &tree, comm);
    collwise_scratch_free(blocks);
}
