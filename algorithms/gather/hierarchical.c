/* Gather over two levels: up an in-order binomial tree to the leader of each node, and from the leaders, of which the
 * root is one, up a tree of their own, binomial (gather/binomial.c) if all nodes have equally many processes, else
 * linear (gatherv/linear.c). For N nodes of n processes, with alpha' and beta' within nodes:
 *     T = ceil(log2 n) alpha' + (n - 1) m beta' + ceil(log2 N) alpha + (N - 1) n m beta */
#include "internal.h"

#include <stdlib.h>

static void gather_from_leaders(char *by_node, const char *blocks, size_t block_bytes, const collwise_levels *levels) {
    const collwise_nodes *nodes = levels->nodes;
    size_t bytes = (size_t)collwise_node_size(nodes, levels->own_node) * block_bytes;
    if (collwise_are_equal(nodes)) {
        collwise_gather_binomial(blocks, by_node, bytes, levels->top, levels->between, (collwise_parameters){0});
    } else {
        size_t *offsets = collwise_node_offsets(nodes, block_bytes, levels->between);
        collwise_gatherv_linear(blocks, bytes, by_node, offsets, levels->top, levels->between,
                                (collwise_parameters){0});
        free(offsets);
    }
}

void collwise_gather_hierarchical(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                  collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(root, comm);
    const collwise_nodes *nodes = levels.nodes;
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm);
    size_t on_node = (size_t)collwise_node_size(nodes, levels.own_node);
    int gathers_in_place = rank == root && nodes->in_order;
    char *by_node = NULL, *blocks = NULL;
    if (rank == root) {
        by_node = gathers_in_place ? all : collwise_scratch((size_t)procs * block_bytes, comm);
        blocks = by_node + (size_t)nodes->first[levels.own_node] * block_bytes;
    } else if (levels.is_leader) {
        blocks = collwise_scratch(on_node * block_bytes, comm);
    }
    if (levels.is_leader && !gathers_in_place) {
        collwise_copy(blocks + (size_t)levels.leader * block_bytes, mine, block_bytes);
    }
    if (on_node > 1) {
        const char *own = levels.is_leader ? blocks + (size_t)levels.leader * block_bytes : mine;
        collwise_gather_binomial(own, blocks, block_bytes, levels.leader, levels.node, with);
    }
    if (levels.is_leader && nodes->nodes > 1) {
        gather_from_leaders(by_node, blocks, block_bytes, &levels);
    }
    if (rank == root && !gathers_in_place) {
        collwise_put_by_rank(all, by_node, block_bytes, nodes);
    }
    if (!gathers_in_place) {
        collwise_scratch_free(rank == root ? by_node : blocks);
    }
}
