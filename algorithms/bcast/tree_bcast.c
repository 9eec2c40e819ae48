/* The segmented broadcast that all trees share:
 *
 *     for each segment:
 *         wait for it from the parent, and post the receive of the next one
 *         start to send it to each child
 *         wait for these sends
 *
 * It is Algorithm 1 of Nuriyev & Lastovetsky 2021, except that this receives a segment only when all sends of the one
 * before have ended: a rendezvous then starts later. */
#include "internal.h"

/* The same for one segment: no receive is posted ahead, and a single send need not be waited for with others. */
static void bcast_at_once(char *data, size_t bytes, const collwise_tree *tree, MPI_Comm comm) {
    if (tree->parent >= 0) {
        collwise_receive(data, bytes, tree->parent, comm);
    }
    if (tree->child_count == 1) {
        collwise_send(data, bytes, collwise_tree_child(tree, 0), comm);
        return;
    }
    collwise_requests sends = collwise_requests_make(tree->child_count, comm);
    for (int child = 0; child < tree->child_count; child++) {
        collwise_start_send(&sends, data, bytes, collwise_tree_child(tree, child));
    }
    collwise_wait(&sends);
    collwise_requests_free(&sends);
}

void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    collwise_segment segment = collwise_byte_segments(collwise_whole(bytes), segment_bytes);
    if (COLLWISE_TAKES_SHORT_WAYS && segment.count > 0 && segment.count == bytes) {
        bcast_at_once(data, bytes, tree, comm);
        return;
    }
    collwise_incoming incoming = collwise_incoming_make(data, 1, segment, tree->parent, comm);
    collwise_requests sends = collwise_requests_make(tree->child_count, comm);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        collwise_incoming_wait(&incoming);
        for (int child = 0; child < tree->child_count; child++) {
            collwise_start_send(&sends, data + segment.first, segment.count, collwise_tree_child(tree, child));
        }
        collwise_wait(&sends);
    }
    collwise_requests_free(&sends);
    collwise_incoming_free(&incoming);
}
