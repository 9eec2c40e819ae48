/* Scatter over two levels: from the root to one leader of each node down a tree, binomial (scatter/binomial.c) if all
 * nodes have equally many processes, else linear (scatterv/linear.c), and down an in-order binomial tree on each node.
 * The root is the leader of its node. For N nodes of n processes, with alpha' and beta' within nodes:
 *     T = ceil(log2 N) alpha + (N - 1) n m beta + ceil(log2 n) alpha' + (n - 1) m beta' */
#include "internal.h"

#include <stdlib.h>

static void scatter_to_leaders(const char *by_node, char *blocks, size_t block_bytes, const collwise_levels *levels) {
    const collwise_nodes *nodes = levels->nodes;
    size_t bytes = (size_t)collwise_node_size(nodes, levels->own_node) * block_bytes;
    if (collwise_are_equal(nodes)) {
        collwise_scatter_binomial(by_node, blocks, bytes, levels->top, levels->between, (collwise_parameters){0});
    } else {
        size_t *offsets = collwise_node_offsets(nodes, block_bytes, levels->between);
        collwise_scatterv_linear(by_node, offsets, blocks, bytes, levels->top, levels->between,
                                 (collwise_parameters){0});
        free(offsets);
    }
}

void collwise_scatter_hierarchical(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                   collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(root, comm);
    const collwise_nodes *nodes = levels.nodes;
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm);
    size_t on_node = (size_t)collwise_node_size(nodes, levels.own_node);
    const char *by_node = all, *blocks = NULL;
    char *copy = NULL;
    if (rank == root && !nodes->in_order) {
        by_node = copy = collwise_scratch((size_t)procs * block_bytes, comm);
        collwise_put_by_node(copy, all, block_bytes, nodes);
    } else if (rank != root && levels.is_leader) {
        blocks = copy = collwise_scratch(on_node * block_bytes, comm);
    }
    if (levels.is_leader && nodes->nodes > 1) {
        scatter_to_leaders(by_node, copy, block_bytes, &levels);
    }
    if (rank == root) {
        blocks = by_node + (size_t)nodes->first[levels.own_node] * block_bytes;
    } else if (levels.is_leader) {
        collwise_copy(mine, blocks + (size_t)levels.leader * block_bytes, block_bytes);
    }
    if (on_node > 1) {
        collwise_scatter_binomial(blocks, mine, block_bytes, levels.leader, levels.node, with);
    }
    collwise_scratch_free(copy);
}
