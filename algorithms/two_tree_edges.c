/* The steps in which the edges of the two trees carry each segment (see topology/two_tree.c and bcast/two_tree.c).
 *
 * If there are several segments, sends are synchronous, which keeps processes in step: eager messages of later steps
 * would share the links with those that other processes wait for. */
#include "internal.h"

/* First steps of a broadcast are at most this. */
static size_t latest_first_step(MPI_Comm comm) { return 2 * (size_t)collwise_log2(collwise_size_of(comm) - 1) + 1; }

collwise_edges collwise_edges_in(int tree, int root, collwise_segment segments, int reversed, MPI_Comm comm) {
    collwise_two_tree place = collwise_two_tree_at(tree, collwise_size_of(comm), root, collwise_rank_in(comm));
    size_t latest = latest_first_step(comm);
    int is_segmented = collwise_segments_left(&segments) > 1;
    collwise_edges edges = {.start_send = is_segmented ? collwise_start_synchronous_send : collwise_start_send};
    if (place.parent >= 0) {
        size_t first_step = (size_t)place.first_step;
        edges.parent = (collwise_edge){place.parent, reversed ? latest - first_step : first_step, segments};
    }
    for (int child = 0; child < place.child_count; child++) {
        size_t first_step = (size_t)place.child_first_steps[child];
        edges.children[child] =
            (collwise_edge){place.children[child], reversed ? latest - first_step : first_step, segments};
    }
    return edges;
}

collwise_part collwise_edge_carries(collwise_edge *edge, size_t step) {
    if (step != edge->next_step) {
        return collwise_whole(0);
    }
    collwise_part carried = {edge->segment.first, edge->segment.count};
    collwise_next_segment(&edge->segment);
    edge->next_step += 2;
    return carried;
}

size_t collwise_two_tree_steps(const collwise_segment *segments, MPI_Comm comm) {
    return latest_first_step(comm) - 1 + 2 * collwise_segments_left(segments);
}
