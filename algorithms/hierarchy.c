/* Two levels of communicators: the processes of each node, and one leader of each node. */
#include "internal.h"

#include <stdlib.h>

typedef struct {
    int label, rank;
} labelled;

static int compare(const void *left, const void *right) {
    const labelled *one = left, *other = right;
    if (one->label != other->label) {
        return one->label < other->label ? -1 : 1;
    }
    return (one->rank > other->rank) - (one->rank < other->rank);
}

/* Each rank's lowest rank of the same label. */
static void find_lowest(const int *labels, int procs, int *lowest, MPI_Comm comm) {
    labelled *sorted = collwise_allocate((size_t)procs * sizeof *sorted, comm);
    for (int rank = 0; rank < procs; rank++) {
        sorted[rank] = (labelled){labels[rank], rank};
    }
    qsort(sorted, (size_t)procs, sizeof *sorted, compare);
    for (int i = 0; i < procs; i++) {
        int rank = sorted[i].rank, continues = i > 0 && sorted[i - 1].label == sorted[i].label;
        lowest[rank] = continues ? lowest[sorted[i - 1].rank] : rank;
    }
    free(sorted);
}

collwise_nodes *collwise_nodes_make(const int *labels, int procs, MPI_Comm comm) {
    size_t count = (size_t)procs;
    collwise_nodes *made = collwise_allocate(sizeof *made + (4 * count + 1) * sizeof *made->memory, comm);
    *made = (collwise_nodes){.in_order = 1,
                             .node_of = made->memory,
                             .place_of = made->memory + count,
                             .ranks = made->memory + 2 * count,
                             .first = made->memory + 3 * count};
    int *lowest = made->ranks, *first = made->first; /* `ranks` serves as scratch memory until it is filled */
    find_lowest(labels, procs, lowest, comm);
    for (int rank = 0; rank <= procs; rank++) {
        first[rank] = 0;
    }
    for (int rank = 0; rank < procs; rank++) {
        int is_lowest = lowest[rank] == rank, node = is_lowest ? made->nodes++ : made->node_of[lowest[rank]];
        made->in_order = made->in_order && (is_lowest || node == made->node_of[rank - 1]);
        made->node_of[rank] = node;
        made->place_of[rank] = first[node + 1]++;
    }
    for (int node = 0; node < made->nodes; node++) {
        made->largest = first[node + 1] > made->largest ? first[node + 1] : made->largest;
        first[node + 1] += first[node];
    }
    for (int rank = 0; rank < procs; rank++) {
        made->ranks[first[made->node_of[rank]] + made->place_of[rank]] = rank;
    }
    return made;
}

int collwise_node_size(const collwise_nodes *nodes, int node) { return nodes->first[node + 1] - nodes->first[node]; }

/* The place of a node's leader: that of the root in its own node, where there are so many processes. */
static int leader_place(const collwise_nodes *nodes, int node, int root) {
    int place = nodes->place_of[root], last = collwise_node_size(nodes, node) - 1;
    return place < last ? place : last;
}

collwise_hierarchy *collwise_hierarchy_make(collwise_nodes *nodes, MPI_Comm comm) {
    size_t most = (size_t)nodes->largest;
    collwise_hierarchy *made = collwise_allocate(sizeof *made + most * sizeof *made->leaders, comm);
    *made = (collwise_hierarchy){.nodes = nodes, .node = MPI_COMM_NULL};
    for (size_t place = 0; place < most; place++) {
        made->leaders[place] = (collwise_leaders){.comm = MPI_COMM_NULL};
    }
    return made;
}

static void free_communicator(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL) {
        MPI_Comm_free(comm);
    }
}

void collwise_hierarchy_free(collwise_hierarchy *made) {
    for (int place = 0; place < made->nodes->largest; place++) {
        free_communicator(&made->leaders[place].comm);
    }
    free_communicator(&made->node);
    free(made);
}

collwise_levels collwise_levels_of(int root, MPI_Comm comm) {
    collwise_hierarchy *made = collwise_hierarchy_of(comm);
    const collwise_nodes *nodes = made->nodes;
    int rank = collwise_rank_in(comm), node = nodes->node_of[rank], leader = leader_place(nodes, node, root);
    collwise_leaders *leaders = &made->leaders[nodes->place_of[root]];
    if (made->node == MPI_COMM_NULL) {
        MPI_Comm_split(comm, node, nodes->place_of[rank], &made->node);
    }
    if (!leaders->are_known) {
        leaders->are_known = 1;
        MPI_Comm_split(comm, nodes->place_of[rank] == leader ? 0 : MPI_UNDEFINED, node, &leaders->comm);
    }
    return (collwise_levels){.nodes = nodes,
                             .node = made->node,
                             .between = leaders->comm,
                             .own_node = node,
                             .leader = leader,
                             .top = nodes->node_of[root],
                             .is_leader = nodes->place_of[rank] == leader};
}

static int depth_of(collwise_topology topology, int procs, int root, int rank) {
    int depth = 0;
    for (int at = rank; at != root; depth++) {
        at = collwise_tree_at(topology, procs, root, at, 0).parent;
    }
    return depth;
}

collwise_two_levels collwise_two_levels_of(collwise_topology between, collwise_topology within, int root,
                                           MPI_Comm comm) {
    collwise_levels levels = collwise_levels_of(root, comm);
    int nodes = levels.nodes->nodes, place = levels.nodes->place_of[collwise_rank_in(comm)];
    int on_node = collwise_node_size(levels.nodes, levels.own_node);
    collwise_two_levels made = {
        .levels = levels,
        .between = {.parent = -1},
        .within = collwise_tree_at(within, on_node, levels.leader, place, 0),
        .depth =
            depth_of(between, nodes, levels.top, levels.own_node) + depth_of(within, on_node, levels.leader, place),
    };
    if (levels.is_leader) {
        made.between = collwise_tree_at(between, nodes, levels.top, levels.own_node, 0);
    }
    made.parent = levels.is_leader ? made.between.parent : made.within.parent;
    made.parents_comm = levels.is_leader ? levels.between : levels.node;
    return made;
}

/* --- The ways down and up ----------------------------------------------------------------------------------------- */

/* Sends one segment to the children on both levels. */
typedef struct {
    const collwise_two_levels *tree;
    collwise_requests between, within;
} sender;

static sender sender_make(const collwise_two_levels *tree) {
    return (sender){.tree = tree,
                    .between = collwise_requests_make(tree->between.child_count, tree->levels.between),
                    .within = collwise_requests_make(tree->within.child_count, tree->levels.node)};
}

static void send_to_children(collwise_requests *under_way, const collwise_tree *tree, const char *data, size_t bytes) {
    collwise_wait(under_way); /* the segment before */
    for (int child = 0; child < tree->child_count; child++) {
        collwise_start_send(under_way, data, bytes, collwise_tree_child(tree, child));
    }
}

static void send_down(sender *to, const char *data, size_t bytes) {
    send_to_children(&to->between, &to->tree->between, data, bytes);
    send_to_children(&to->within, &to->tree->within, data, bytes);
}

static void sender_finish(sender *to) {
    collwise_wait(&to->between);
    collwise_wait(&to->within);
    collwise_requests_free(&to->between);
    collwise_requests_free(&to->within);
}

/* Receives and combines the children's segments, those of the same node first. */
typedef struct {
    const collwise_two_levels *tree;
    collwise_contributions between, within;
} receiver;

static receiver receiver_make(const collwise_two_levels *tree, collwise_segment first, const collwise_operation *op) {
    return (receiver){.tree = tree,
                      .between = collwise_contributions_make(&tree->between, first, op, tree->levels.between),
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

void collwise_two_level_bcast(char *data, size_t bytes, const collwise_two_levels *tree, size_t segment_bytes) {
    collwise_segment segment = collwise_byte_segments(collwise_whole(bytes), segment_bytes);
    collwise_incoming incoming = collwise_incoming_make(data, 1, segment, tree->parent, tree->parents_comm);
    sender sends = sender_make(tree);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        collwise_incoming_wait(&incoming);
        send_down(&sends, data + segment.first, segment.count);
    }
    sender_finish(&sends);
    collwise_incoming_free(&incoming);
}

/* A leader's part. The sum of one segment is on its way to the parent while that of the next one is made. */
static void reduce_as_leader(const char *data, char *result, size_t elements, const collwise_operation *op,
                             const collwise_two_levels *tree, size_t segment_bytes) {
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

void collwise_two_level_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                               const collwise_two_levels *tree, size_t segment_bytes) {
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

void collwise_two_level_allreduce(char *data, size_t elements, const collwise_operation *op,
                                  const collwise_two_levels *tree, size_t segment_bytes) {
    collwise_segment up = collwise_element_segments(collwise_whole(elements), op, segment_bytes), down = up;
    size_t unit = op->element_bytes, lag = 2 * (size_t)tree->depth;
    receiver children = receiver_make(tree, up, op);
    sender sends = sender_make(tree);
    collwise_requests to_parent = collwise_requests_make(1, tree->parents_comm);
    collwise_incoming incoming = {0};
    for (size_t step = 0; down.count > 0; step++) {
        char *sum = data + up.first * unit;
        combine_children(sum, up.count, op, &children);
        collwise_wait(&to_parent);
        if (step == 1 && tree->parent >= 0) { /* from now on segment 0 may be overwritten */
            incoming = collwise_incoming_make(data, unit, down, tree->parent, tree->parents_comm);
        }
        if (up.count > 0 && tree->parent >= 0) {
            collwise_start_send(&to_parent, sum, up.count * unit, tree->parent);
        }
        collwise_next_segment(&up);
        if (step >= lag) {
            if (tree->parent >= 0) {
                collwise_incoming_wait(&incoming);
            }
            send_down(&sends, data + down.first * unit, down.count * unit);
            collwise_next_segment(&down);
        }
    }
    collwise_incoming_free(&incoming);
    collwise_requests_free(&to_parent);
    sender_finish(&sends);
    receiver_free(&children);
}
