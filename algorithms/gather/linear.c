/* Gather up a linear (flat) tree, in which all other processes are children of the root: it receives from one after
 * another. Formula (12):
 *     T = (P - 1) (alpha + m beta) */
#include "internal.h"

void collwise_gather_part(const char *mine, char *all, size_t block_bytes, collwise_part part, int root,
                          MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_FLAT, root, comm, 0);
    if (tree.parent >= 0) {
        collwise_send(mine + part.first, part.count, root, comm);
        return;
    }
    for (int rank = 0; rank < tree.procs; rank++) {
        if (rank != root) {
            collwise_receive(all + (size_t)rank * block_bytes + part.first, part.count, rank, comm);
        }
    }
}

void collwise_gather_linear(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                            collwise_parameters with) {
    (void)with;
    collwise_gather_part(mine, all, block_bytes, (collwise_part){0, block_bytes}, root, comm);
}
