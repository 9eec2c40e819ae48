/* Allgather over two levels: a gather up an in-order binomial tree to the leader of each node (gather/binomial.c), an
 * allgather by the leaders (allgatherv/bruck.c), and a segmented broadcast of all blocks down a binomial tree on each
 * node (bcast/binomial.c). For one segment and N nodes of n processes, with alpha' and beta' within nodes:
 *     T = ceil(log2 N) alpha + (N - 1) n m beta + ceil(log2 n) (2 alpha' + N n m beta') + (n - 1) m beta' */
#include "internal.h"

#include <stdlib.h>

/* The leader's part: it has its own block at its place in `all`. */
static void gather_as_leader(char *all, size_t block_bytes, const collwise_levels *levels, MPI_Comm comm) {
    const collwise_nodes *nodes = levels->nodes;
    int procs = collwise_size_of(comm);
    size_t *offsets = collwise_node_offsets(nodes, block_bytes, comm);
    char *by_node = nodes->in_order ? all : collwise_scratch((size_t)procs * block_bytes, comm);
    char *blocks = by_node + offsets[levels->own_node], *own = blocks + (size_t)levels->leader * block_bytes;
    if (!nodes->in_order) {
        collwise_copy(own, all + (size_t)collwise_rank_in(comm) * block_bytes, block_bytes);
    }
    if (collwise_node_size(nodes, levels->own_node) > 1) {
        collwise_gather_binomial(own, blocks, block_bytes, levels->leader, levels->node, (collwise_parameters){0});
    }
    if (nodes->nodes > 1) {
        collwise_allgatherv_bruck(by_node, offsets, levels->between, (collwise_parameters){0});
    }
    if (!nodes->in_order) {
        collwise_put_by_rank(all, by_node, block_bytes, nodes);
        collwise_scratch_free(by_node);
    }
    free(offsets);
}

void collwise_allgather_hierarchical(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(0, comm);
    if (levels.is_leader) {
        gather_as_leader(all, block_bytes, &levels, comm);
    } else {
        collwise_gather_binomial(all + (size_t)collwise_rank_in(comm) * block_bytes, NULL, block_bytes, levels.leader,
                                 levels.node, (collwise_parameters){0});
    }
    collwise_bcast_binomial(all, (size_t)collwise_size_of(comm) * block_bytes, levels.leader, levels.node, with);
}
