/* Broadcast of each half of the message down one of two binary trees, in which every process but the root is a leaf of
 * at least one. The trees are those of topology/two_tree.c; an edge carries a segment in every other step, so that a
 * process receives one segment and sends one in each step at most:
 *
 *     for each step:
 *         in both trees: start to receive the segment that the parent's edge carries in this step, if any
 *                        start to send the segments that the children's edges carry
 *         wait for all of them
 *
 * With n_s / 2 segments in each half:
 *     T = (2 floor(log2(P - 1)) + n_s) (alpha + m_s beta) */
#include "internal.h"

static void start_step(char *data, collwise_edges *edges, size_t step, collwise_requests *requests) {
    collwise_part received = collwise_edge_carries(&edges->parent, step);
    if (received.count > 0) {
        collwise_start_receive(requests, data + received.first, received.count, edges->parent.peer);
    }
    for (int child = 0; child < 2; child++) {
        collwise_part sent = collwise_edge_carries(&edges->children[child], step);
        if (sent.count > 0) {
            edges->start_send(requests, data + sent.first, sent.count, edges->children[child].peer);
        }
    }
}

void collwise_bcast_two_tree(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_segment first = collwise_byte_segments(collwise_equal_part(bytes, 2, 0), with.segment_bytes);
    collwise_segment second = collwise_byte_segments(collwise_equal_part(bytes, 2, 1), with.segment_bytes);
    collwise_edges trees[] = {collwise_edges_in(0, root, first, 0, comm), collwise_edges_in(1, root, second, 0, comm)};
    size_t steps = collwise_two_tree_steps(&first, comm);
    collwise_requests requests = collwise_requests_make(2, comm);
    for (size_t step = 0; step < steps; step++) {
        start_step(data, &trees[0], step, &requests);
        start_step(data, &trees[1], step, &requests);
        collwise_wait(&requests);
    }
    collwise_requests_free(&requests);
}
