/* Algorithm 1 of Nuriyev & Lastovetsky 2021, the segmented broadcast that all trees share. */
#include "internal.h"

void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    collwise_requests sends = collwise_requests_make(tree->child_count, comm);
    for (collwise_segment segment = collwise_byte_segments(collwise_whole(bytes), segment_bytes); segment.count > 0;
         collwise_next_segment(&segment)) {
        if (tree->parent >= 0) {
            collwise_receive(data + segment.first, segment.count, tree->parent, comm);
        }
        for (int child = 0; child < tree->child_count; child++) {
            collwise_start_send(&sends, data + segment.first, segment.count, collwise_tree_child(tree, child));
        }
        collwise_wait(&sends);
    }
    collwise_requests_free(&sends);
}
