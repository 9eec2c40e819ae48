/* Alltoall over two levels: the processes of a node send all their blocks to its leader (gather/binomial.c), the
 * leaders exchange the blocks of their nodes pairwise (alltoallv/pairwise.c), each two of them in one message, and send
 * their processes what came for them (scatter/binomial.c). A node thereby sends another one message instead of one for
 * each pair of processes. For N nodes of n processes, with alpha' and beta' within nodes:
 *     T = 2 (ceil(log2 n) alpha' + (n - 1) N n m beta') + (N - 1) (alpha + n n m beta) */
#include "internal.h"

#include <stdlib.h>

static void exchange(const char *packed, char *received, size_t unit_bytes, const collwise_levels *levels) {
    size_t *offsets = collwise_node_offsets(levels->nodes, unit_bytes, levels->between);
    size_t own = offsets[levels->own_node];
    collwise_copy(received + own, packed + own, offsets[levels->own_node + 1] - own);
    collwise_alltoallv_pairwise(packed, offsets, received, offsets, levels->between, (collwise_parameters){0});
    free(offsets);
}

static void exchange_as_leader(const char *send, char *receive, size_t block_bytes, const collwise_levels *levels,
                               MPI_Comm comm) {
    const collwise_nodes *nodes = levels->nodes;
    int procs = collwise_size_of(comm), on_node = collwise_node_size(nodes, levels->own_node);
    size_t each = (size_t)procs * block_bytes, bytes = (size_t)on_node * each, own = (size_t)levels->leader * each;
    char *first = collwise_scratch(bytes, comm), *second = collwise_scratch(bytes, comm);
    collwise_copy(first + own, send, each);
    if (on_node > 1) {
        collwise_gather_binomial(first + own, first, each, levels->leader, levels->node, (collwise_parameters){0});
    }
    collwise_put_by_receiving_node(second, first, block_bytes, on_node, NULL, nodes);
    exchange(second, first, (size_t)on_node * block_bytes, levels);
    collwise_put_by_receiver(second, first, block_bytes, on_node, NULL, nodes);
    if (on_node > 1) {
        collwise_scatter_binomial(second, receive, each, levels->leader, levels->node, (collwise_parameters){0});
    }
    collwise_copy(receive, second + own, each);
    collwise_scratch_free(first);
    collwise_scratch_free(second);
}

void collwise_alltoall_hierarchical(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(0, comm);
    size_t each = (size_t)collwise_size_of(comm) * block_bytes;
    if (levels.is_leader) {
        exchange_as_leader(send, receive, block_bytes, &levels, comm);
    } else {
        collwise_gather_binomial(send, NULL, each, levels.leader, levels.node, with);
        collwise_scatter_binomial(NULL, receive, each, levels.leader, levels.node, with);
    }
}
