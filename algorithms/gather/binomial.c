/* Gather up an in-order binomial tree. The virtual rank is v = (rank - root) mod P:
 *
 *     children of v:            v + 2^k for each 2^k below v's lowest bit (the root: for each 2^k), if below P,
 *                               smallest k first
 *     parent of v:              v without its lowest bit
 *     subtree of child v + 2^k: v + 2^k to v + 2^(k+1) - 1, whose blocks the child sends to v
 *
 * At step i the root receives 2^(i-1) blocks. Formula (15):
 *     T = ceil(log2 P) alpha + (P - 1) m beta */
#include "internal.h"

/* The root received the blocks in the order of virtual ranks, its own first. */
static void put_in_rank_order(char *all, const char *by_virtual_rank, size_t block_bytes, int procs, int root) {
    size_t until_last_rank = (size_t)(procs - root) * block_bytes;
    collwise_copy(all + (size_t)root * block_bytes, by_virtual_rank, until_last_rank);
    collwise_copy(all, by_virtual_rank + until_last_rank, (size_t)root * block_bytes);
}

void collwise_gather_binomial(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                              collwise_parameters with) {
    (void)with;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, root, comm, 0);
    if (tree.child_count == 0) {
        collwise_send(mine, block_bytes, tree.parent, comm);
        return;
    }
    size_t subtree_bytes = (size_t)collwise_tree_size(&tree) * block_bytes;
    int in_rank_order = tree.parent < 0 && root == 0;
    char *blocks = in_rank_order ? all : collwise_scratch(subtree_bytes, comm);
    if (!in_rank_order) {
        collwise_copy(blocks, mine, block_bytes);
    }
    for (int child = 0; child < tree.child_count; child++) {
        collwise_receive(blocks + ((size_t)1 << child) * block_bytes,
                         (size_t)collwise_tree_child_size(&tree, child) * block_bytes,
                         collwise_tree_child(&tree, child), comm);
    }
    if (tree.parent >= 0) {
        collwise_send(blocks, subtree_bytes, tree.parent, comm);
    } else if (!in_rank_order) {
        put_in_rank_order(all, blocks, block_bytes, tree.procs, root);
    }
    if (!in_rank_order) {
        collwise_scratch_free(blocks);
    }
}
