/* Nuriyev & Lastovetsky 2021, Algorithm 1: the segmented broadcast that all tree topologies share.
 * Internal processes wait for a segment, start its non-blocking sends to all children, and wait for them. */
#include "internal.h"

void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    size_t segments = collwise_segment_count(bytes, segment_bytes);
    collwise_requests sends = collwise_requests_make(tree->child_count, comm);
    for (size_t i = 0; i < segments; i++) {
        char *segment = data + i * collwise_segment_bytes(segment_bytes);
        size_t length = collwise_segment_length(bytes, segment_bytes, i);
        if (tree->parent >= 0) {
            collwise_receive(segment, length, tree->parent, comm);
        }
        for (int child = 0; child < tree->child_count; child++) {
            collwise_start_send(&sends, segment, length, collwise_tree_child(tree, child));
        }
        collwise_wait(&sends);
    }
    collwise_requests_free(&sends);
}
