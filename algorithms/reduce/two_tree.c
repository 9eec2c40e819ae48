/* Reduction of each half of the elements up one of two binary trees, in which every process but the root is a leaf of
 * at least one. It is the broadcast by two trees (bcast/two_tree.c) in reverse order:
 *
 *     for each step:
 *         in both trees: start to receive the segment that a child's edge carries in this step, if any
 *                        start to send the segment that the parent's edge carries
 *         wait for all of them
 *         combine what was received
 *
 * A process receives one segment and sends one in each step at most. With n_s / 2 segments in each half:
 *     T = (2 floor(log2(P - 1)) + n_s) (alpha + m_s beta + m_s gamma) */
#include "internal.h"

/* Returns the part that is being received, if any. */
static collwise_part start_step(const char *sum, char *received, size_t element_bytes, collwise_edges *edges,
                                size_t step, collwise_requests *requests) {
    collwise_part arriving = collwise_whole(0);
    for (int child = 0; child < 2; child++) {
        collwise_part carried = collwise_edge_carries(&edges->children[child], step);
        if (carried.count > 0) {
            collwise_start_receive(requests, received, carried.count * element_bytes, edges->children[child].peer);
            arriving = carried;
        }
    }
    collwise_part sent = collwise_edge_carries(&edges->parent, step);
    if (sent.count > 0) {
        edges->start_send(requests, sum + sent.first * element_bytes, sent.count * element_bytes, edges->parent.peer);
    }
    return arriving;
}

static void reduce_up_both_trees(char *sum, size_t elements, const collwise_operation *op, int root,
                                 size_t segment_bytes, MPI_Comm comm) {
    size_t unit = op->element_bytes;
    collwise_segment first = collwise_element_segments(collwise_equal_part(elements, 2, 0), op, segment_bytes);
    collwise_segment second = collwise_element_segments(collwise_equal_part(elements, 2, 1), op, segment_bytes);
    collwise_edges trees[] = {collwise_edges_in(0, root, first, 1, comm), collwise_edges_in(1, root, second, 1, comm)};
    size_t steps = collwise_two_tree_steps(&first, comm);
    char *received = collwise_scratch(first.count * unit, comm);
    collwise_requests requests = collwise_requests_make(2, comm);
    for (size_t step = 0; step < steps; step++) {
        collwise_part arriving[2];
        for (int tree = 0; tree < 2; tree++) {
            arriving[tree] = start_step(sum, received, unit, &trees[tree], step, &requests);
        }
        collwise_wait(&requests);
        for (int tree = 0; tree < 2; tree++) {
            collwise_combine(op, received, sum + arriving[tree].first * unit, arriving[tree].count);
        }
    }
    collwise_requests_free(&requests);
    collwise_scratch_free(received);
}

void collwise_reduce_two_tree(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                              MPI_Comm comm, collwise_parameters with) {
    int is_root = collwise_rank_in(comm) == root;
    char *sum = is_root ? result : collwise_scratch(elements * op->element_bytes, comm);
    collwise_copy(sum, data, elements * op->element_bytes);
    reduce_up_both_trees(sum, elements, op, root, with.segment_bytes, comm);
    if (!is_root) {
        collwise_scratch_free(sum);
    }
}
