/* Scatter down a linear (flat) tree, in which all other processes are children of the root: it sends to one after
 * another, with blocking sends:
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_scatter_part(const char *all, char *mine, size_t block_bytes, collwise_part part, int root,
                           MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_receive(mine + part.first, part.count, root, comm);
        return;
    }
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_send(all + (size_t)rank * block_bytes + part.first, part.count, rank, comm);
        }
    }
}

void collwise_scatter_linear(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                             collwise_parameters with) {
    (void)with;
    collwise_scatter_part(all, mine, block_bytes, (collwise_part){0, block_bytes}, root, comm);
}
