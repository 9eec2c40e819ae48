/* Broadcast, reduction and allreduce over a tree of the nodes' leaders and one on each node, segment by segment. */
#include "internal.h"

#include <stdlib.h>

/* A tree of the leaders, and one of the same form below each of them on its node. */
typedef struct {
    collwise_levels levels;
    collwise_tree between, within; /* the process has no peers in `between` unless it is a leader */
    int parent;                    /* -1 at the root */
    MPI_Comm parents_comm;
    int depth; /* the number of edges up to the root */
} two_levels;

static int depth_of(collwise_topology topology, int procs, int root, int rank) {
    int depth = 0;
    for (int at = rank; at != root; depth++) {
        at = collwise_tree_at(topology, procs, root, at, 0).parent;
    }
    return depth;
}

static two_levels two_levels_of(collwise_topology topology, int root, MPI_Comm comm) {
    collwise_levels levels = collwise_levels_of(root, comm);
    int nodes = levels.nodes->nodes, place = levels.nodes->place_of[collwise_rank_in(comm)];
    int on_node = collwise_node_size(levels.nodes, levels.own_node);
    two_levels made = {
        .levels = levels,
        .between = {.parent = -1},
        .within = collwise_tree_at(topology, on_node, levels.leader, place, 0),
        .depth =
            depth_of(topology, nodes, levels.top, levels.own_node) + depth_of(topology, on_node, levels.leader, place),
    };
    if (levels.is_leader) {
        made.between = collwise_tree_at(topology, nodes, levels.top, levels.own_node, 0);
    }
    made.parent = levels.is_leader ? made.between.parent : made.within.parent;
    made.parents_comm = levels.is_leader ? levels.between : levels.node;
    return made;
}

/* Sends segments to the children on both levels. */
typedef struct {
    collwise_requests between, within;
} sender;

static sender sender_make(const two_levels *tree) {
    return (sender){.between = collwise_requests_make(tree->between.child_count, tree->levels.between),
                    .within = collwise_requests_make(tree->within.child_count, tree->levels.node)};
}

static void send_to_children(collwise_requests *under_way, const collwise_tree *tree, const char *data, size_t bytes) {
    for (int child = 0; child < tree->child_count; child++) {
        collwise_start_send(under_way, data, bytes, collwise_tree_child(tree, child));
    }
}

static void sender_finish(sender *to) {
    collwise_wait(&to->between);
    collwise_wait(&to->within);
    collwise_requests_free(&to->between);
    collwise_requests_free(&to->within);
}

/* Receives and combines the children's segments, those of the same node first. */
typedef struct {
    collwise_contributions between, within;
} receiver;

static receiver receiver_make(const two_levels *tree, collwise_segment first, const collwise_operation *op) {
    return (receiver){.between = collwise_contributions_make(&tree->between, first, op, tree->levels.between),
                      .within = collwise_contributions_make(&tree->within, first, op, tree->levels.node)};
}

static void combine_children(char *sum, size_t elements, const collwise_operation *op, receiver *from) {
    collwise_contributions_combine(&from->within, sum, elements, op);
    collwise_contributions_combine(&from->between, sum, elements, op);
}

static void receiver_free(receiver *from) {
    collwise_contributions_free(&from->within);
    collwise_contributions_free(&from->between);
}

void collwise_two_level_bcast(collwise_topology topology, char *data, size_t bytes, int root, MPI_Comm comm,
                              collwise_parameters with) {
    two_levels tree = two_levels_of(topology, root, comm);
    collwise_segment segment = collwise_byte_segments(collwise_whole(bytes), with.segment_bytes);
    collwise_incoming incoming = collwise_incoming_make(data, 1, segment, tree.parent, tree.parents_comm);
    sender sends = sender_make(&tree);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        collwise_incoming_wait(&incoming);
        /* On each level the segment before has left. */
        collwise_wait(&sends.between);
        send_to_children(&sends.between, &tree.between, data + segment.first, segment.count);
        collwise_wait(&sends.within);
        send_to_children(&sends.within, &tree.within, data + segment.first, segment.count);
    }
    sender_finish(&sends);
    collwise_incoming_free(&incoming);
}

/* A leader's part. The sum of one segment is on its way to the parent while that of the next one is made. */
static void reduce_as_leader(const char *data, char *result, size_t elements, const collwise_operation *op,
                             const two_levels *tree, size_t segment_bytes) {
    collwise_segment segment = collwise_element_segments(collwise_whole(elements), op, segment_bytes);
    size_t unit = op->element_bytes, most = segment.count;
    int is_top = tree->parent < 0;
    char *sums = is_top ? NULL : collwise_scratch(2 * most * unit, tree->levels.node);
    receiver children = receiver_make(tree, segment, op);
    collwise_requests to_parent = collwise_requests_make(1, tree->parents_comm);
    for (size_t i = 0; segment.count > 0; i++, collwise_next_segment(&segment)) {
        char *sum = is_top ? result + segment.first * unit : sums + i % 2 * most * unit;
        collwise_copy(sum, data + segment.first * unit, segment.count * unit);
        combine_children(sum, segment.count, op, &children);
        if (!is_top) {
            collwise_wait(&to_parent);
            collwise_start_send(&to_parent, sum, segment.count * unit, tree->parent);
        }
    }
    collwise_wait(&to_parent);
    collwise_requests_free(&to_parent);
    receiver_free(&children);
    collwise_scratch_free(sums);
}

static void reduce_up(const char *data, char *result, size_t elements, const collwise_operation *op,
                      const two_levels *tree, size_t segment_bytes) {
    if (!tree->levels.is_leader) {
        collwise_tree_reduce(data, NULL, elements, op, &tree->within, tree->levels.leader, segment_bytes,
                             tree->levels.node);
    } else if (tree->within.child_count == 0) {
        collwise_tree_reduce(data, result, elements, op, &tree->between, tree->levels.top, segment_bytes,
                             tree->levels.between);
    } else {
        reduce_as_leader(data, result, elements, op, tree, segment_bytes);
    }
}

void collwise_two_level_reduce(collwise_topology topology, const char *data, char *result, size_t elements,
                               const collwise_operation *op, int root, MPI_Comm comm, collwise_parameters with) {
    int rank = collwise_rank_in(comm), top = op->commutative ? root : 0;
    size_t bytes = elements * op->element_bytes;
    two_levels tree = two_levels_of(topology, top, comm);
    if (!op->commutative && !tree.levels.nodes->in_order) {
        collwise_reduce_binomial(data, result, elements, op, root, comm, with);
        return;
    }
    char *at_top = rank == top && rank != root ? collwise_scratch(bytes, comm) : result;
    reduce_up(data, at_top, elements, op, &tree, with.segment_bytes);
    if (top != root && rank == top) {
        collwise_send(at_top, bytes, root, comm);
        collwise_scratch_free(at_top);
    } else if (top != root && rank == root) {
        collwise_receive(result, bytes, top, comm);
    }
}

/* A result comes back after the latencies and transfers of all edges to the root and back. A process sends so many
 * segments up before it waits for one, if a latency is the transfer of 32 KiB, as it is about in common networks. */
static size_t segments_ahead(const two_levels *tree, size_t segment_bytes) {
    const size_t latency_bytes = 32 << 10;
    return 2 * (size_t)tree->depth * (1 + (latency_bytes + segment_bytes / 2) / segment_bytes);
}

/* Sends down are waited for in the end only: a child asks for a segment many steps later than its parent sends it, and
 * each waits for the other's segments up meanwhile. */
static void reduce_and_bcast(char *data, size_t elements, const collwise_operation *op, const two_levels *tree,
                             size_t segment_bytes) {
    collwise_segment up = collwise_element_segments(collwise_whole(elements), op, segment_bytes), down = up;
    size_t unit = op->element_bytes, ahead = segments_ahead(tree, up.size * unit);
    receiver children = receiver_make(tree, up, op);
    sender sends = sender_make(tree);
    collwise_incoming from_parent = {0};
    collwise_requests to_parent = collwise_requests_make(1, tree->parents_comm);
    for (size_t step = 0; down.count > 0; step++) {
        char *sum = data + up.first * unit;
        combine_children(sum, up.count, op, &children);
        collwise_wait(&to_parent);
        if (step == 1 && tree->parent >= 0) { /* the sum of the first segment has left its place */
            from_parent = collwise_incoming_make(data, unit, down, tree->parent, tree->parents_comm);
        }
        if (up.count > 0 && tree->parent >= 0) {
            collwise_start_send(&to_parent, sum, up.count * unit, tree->parent);
        }
        collwise_next_segment(&up);
        if (step >= ahead) {
            if (tree->parent >= 0) {
                collwise_incoming_wait(&from_parent);
            }
            send_to_children(&sends.between, &tree->between, data + down.first * unit, down.count * unit);
            send_to_children(&sends.within, &tree->within, data + down.first * unit, down.count * unit);
            collwise_next_segment(&down);
        }
    }
    collwise_incoming_free(&from_parent);
    collwise_requests_free(&to_parent);
    sender_finish(&sends);
    receiver_free(&children);
}

void collwise_two_level_allreduce(collwise_topology topology, char *data, size_t elements, const collwise_operation *op,
                                  MPI_Comm comm, collwise_parameters with) {
    two_levels tree = two_levels_of(topology, 0, comm);
    if (op->commutative || tree.levels.nodes->in_order) {
        reduce_and_bcast(data, elements, op, &tree, with.segment_bytes);
    } else {
        collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
    }
}
