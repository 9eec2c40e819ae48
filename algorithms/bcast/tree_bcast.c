/* Nuriyev & Lastovetsky 2021, Algorithm 1: the segmented broadcast that all tree topologies share.
 * Internal processes wait for a segment, start its non-blocking sends to all children, and wait for them. */
#include "internal.h"

#include <stdlib.h>

void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    size_t segments = collwise_segment_count(bytes, segment_bytes);
    MPI_Request *sends = collwise_allocate((size_t)tree->child_count * sizeof *sends, comm);
    for (size_t i = 0; i < segments; i++) {
        char *segment = data + i * collwise_segment_bytes(segment_bytes);
        int length = (int)collwise_segment_length(bytes, segment_bytes, i);
        if (tree->parent >= 0) {
            MPI_Request receive;
            MPI_Irecv(segment, length, MPI_BYTE, tree->parent, COLLWISE_TAG, comm, &receive);
            MPI_Wait(&receive, MPI_STATUS_IGNORE);
        }
        for (int child = 0; child < tree->child_count; child++) {
            MPI_Isend(segment, length, MPI_BYTE, collwise_tree_child(tree, child), COLLWISE_TAG, comm, &sends[child]);
        }
        MPI_Waitall(tree->child_count, sends, MPI_STATUSES_IGNORE);
    }
    free(sends);
}
