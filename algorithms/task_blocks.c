/* Gather, scatter, allgather and alltoall as sequences of tasks, on segments of every block. */
#include "tasks.h"

#include <limits.h>
#include <stdlib.h>

/* The calling process's part. A leader has the blocks of a segment for all processes below it packed, those of its own
 * node together, and if sockets count, those of each socket. */
typedef struct {
    collwise_levels levels;
    collwise_between kind;
    MPI_Comm comm;
    size_t by_socket;     /* 1 if sockets are a level between nodes and processes, else 0 */
    collwise_levels last; /* the groups on the last level, and their leaders: nodes, or the own node's sockets */
    const collwise_nodes *groups;                /* all processes by these groups */
    collwise_block_tree between, middle, within; /* of leaders of nodes, of sockets, and of all processes */
    int *ranks;                  /* of all processes, in the order in which the packed blocks of all lie */
    int *displacements, *counts; /* in bytes, for MPI's own collectives; by node */
    int *rows;                   /* for each place on the own node, the process's own among its packed blocks */
    size_t own_place;            /* packed blocks in front of those of the own node */
    const char *from;
    char *to;
    size_t block_bytes;
    char *buffers;
    size_t room, under_way; /* of one segment's buffer, and how many segments have one */
} block_levels;

static int procs_of(const block_levels *of) { return of->levels.nodes->first[of->levels.nodes->nodes]; }

static size_t on_own_node(const block_levels *of) {
    return (size_t)collwise_node_size(of->levels.nodes, of->levels.own_node);
}

static char *buffer_of(const block_levels *of, size_t index) { return of->buffers + index % of->under_way * of->room; }

/* The tree of the leaders: MPI's own collectives need none, and have the root's blocks first. */
static collwise_topology topology_of(collwise_between kind) {
    return kind == COLLWISE_BETWEEN_LIBRARY ? COLLWISE_FLAT : collwise_between_topology(kind, 0);
}

/* Puts the processes of a node in order, from its leader on: the sockets from that of the leader on, those of each from
 * its own leader on. Returns how many. */
static int put_node(const block_levels *of, int node, int root, int *ranks) {
    const collwise_nodes *nodes = of->levels.nodes, *groups = of->groups;
    const int *members = nodes->ranks + nodes->first[node];
    int size = collwise_node_size(nodes, node), leader = members[collwise_leader_place(nodes, node, root)], filled = 0;
    for (int round = 0; round < 2; round++) {
        for (int place = 0; place < size; place++) {
            int group = groups->node_of[members[place]], is_before = group < groups->node_of[leader];
            if (groups->place_of[members[place]] > 0 || is_before != round) {
                continue;
            }
            int count = collwise_node_size(groups, group), first = collwise_leader_place(groups, group, leader);
            for (int i = 0; i < count; i++) {
                ranks[filled++] = groups->ranks[groups->first[group] + (first + i) % count];
            }
        }
    }
    return filled;
}

/* Packs the nodes in the order of `order`. */
static void put_in_order(block_levels *of, const int *order, int root) {
    int filled = 0;
    for (int i = 0; i < of->levels.nodes->nodes; i++) {
        filled += put_node(of, order[i], root, of->ranks + filled);
    }
}

static void order_by_tree(block_levels *of, int *order, int root) {
    collwise_tree from_top =
        collwise_tree_at(topology_of(of->kind), of->levels.nodes->nodes, of->levels.top, of->levels.top, 0);
    collwise_block_order(&from_top, order, of->comm);
    put_in_order(of, order, root);
}

/* Nodes one after another, from `first` on. */
static void order_from(block_levels *of, int *order, int first) {
    for (int i = 0; i < of->levels.nodes->nodes; i++) {
        order[i] = (first + i) % of->levels.nodes->nodes;
    }
    put_in_order(of, order, 0);
}

/* The tree of the leaders on a level, each of which has the blocks of its group. */
static collwise_block_tree tree_of_leaders(const collwise_levels *levels, collwise_topology topology) {
    const collwise_nodes *groups = levels->nodes;
    size_t *sizes = collwise_allocate((size_t)groups->nodes * sizeof *sizes, levels->between);
    for (int group = 0; group < groups->nodes; group++) {
        sizes[group] = (size_t)collwise_node_size(groups, group);
    }
    collwise_tree tree = collwise_tree_of(topology, levels->top, levels->between, 0);
    collwise_block_tree made = collwise_block_tree_make(&tree, sizes, levels->between);
    free(sizes);
    return made;
}

/* The tree of a group on the last level. */
static collwise_block_tree tree_within(const collwise_levels *levels) {
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, levels->leader, levels->node, 0);
    size_t *sizes = collwise_allocate((size_t)tree.procs * sizeof *sizes, levels->node);
    for (int place = 0; place < tree.procs; place++) {
        sizes[place] = 1;
    }
    collwise_block_tree made = collwise_block_tree_make(&tree, sizes, levels->node);
    free(sizes);
    return made;
}

static block_levels block_levels_of(collwise_between kind, int root, size_t block_bytes, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(root, comm);
    size_t procs = (size_t)collwise_size_of(comm), count = (size_t)levels.nodes->nodes;
    size_t by_socket = with.within == COLLWISE_WITHIN_SOCKETS;
    block_levels made = {.levels = levels,
                         .kind = kind,
                         .comm = comm,
                         .by_socket = by_socket,
                         .last = by_socket ? collwise_socket_levels_of(root, comm) : levels,
                         .groups = by_socket ? collwise_sockets_of_all(comm) : levels.nodes,
                         .block_bytes = block_bytes};
    made.within = tree_within(&made.last);
    if (by_socket && made.last.is_leader) {
        made.middle = tree_of_leaders(&made.last, COLLWISE_IN_ORDER_BINOMIAL);
    }
    if (levels.is_leader) {
        made.between = tree_of_leaders(&levels, topology_of(kind));
    }
    made.ranks = collwise_allocate((2 * procs + 2 * count) * sizeof *made.ranks, comm);
    made.counts = made.ranks + procs;
    made.displacements = made.counts + count;
    made.rows = made.displacements + count;
    return made;
}

/* The blocks that the process has for its own node. */
static size_t held_on_node(const block_levels *of) {
    return of->by_socket && of->last.is_leader ? of->middle.total : of->within.total;
}

static size_t held(const block_levels *of) { return of->levels.is_leader ? of->between.total : held_on_node(of); }

/* Tells whether the process has only its own blocks, which then need no buffer. */
static int is_leaf(const block_levels *of) { return of->within.tree.parent >= 0 && of->within.total == 1; }

static void make_buffers(block_levels *of, const collwise_segment *segments, size_t blocks, size_t last_lag) {
    of->under_way = last_lag + 1;
    of->room = blocks * segments->count; /* the first segment is the longest one */
    of->buffers = collwise_scratch(collwise_min(of->under_way, collwise_segments_left(segments)) * of->room, of->comm);
}

static void free_block_levels(block_levels *of) {
    collwise_block_tree_free(&of->between);
    collwise_block_tree_free(&of->middle);
    collwise_block_tree_free(&of->within);
    free(of->ranks);
    collwise_scratch_free(of->buffers);
}

typedef void adder(collwise_rounds *to, void *context, collwise_part segment, size_t index);

static void add_step(collwise_steps *to, const char *name, size_t lag, block_levels *of, MPI_Comm comm, adder *add) {
    collwise_step *added = collwise_add_step(to, name, lag, comm);
    added->add = add;
    added->context = of;
}

/* A segment's step among the leaders of nodes, among those of the own node's sockets, or on the last level. */
static void add_between(collwise_steps *to, const char *name, size_t lag, block_levels *of, adder *add) {
    if (of->levels.is_leader) {
        add_step(to, name, lag, of, of->levels.between, add);
    }
}

static void add_middle(collwise_steps *to, const char *name, size_t lag, block_levels *of, adder *add) {
    if (of->by_socket && of->last.is_leader) {
        add_step(to, name, lag, of, of->last.between, add);
    }
}

static void add_last(collwise_steps *to, const char *name, size_t lag, block_levels *of, adder *add) {
    add_step(to, name, lag, of, of->last.node, add);
}

/* Whether MPI's own collective is to be used. Its counts and displacements are ints. */
static int uses_library(const block_levels *of, size_t max_bytes) {
    return of->kind == COLLWISE_BETWEEN_LIBRARY && collwise_has_library() && max_bytes <= INT_MAX;
}

/* Sets the counts, and the displacements of nodes that lie in the order of `ranks`. */
static void count_bytes(block_levels *of, size_t block_bytes) {
    const collwise_nodes *nodes = of->levels.nodes;
    size_t place = 0;
    while (place < (size_t)procs_of(of)) {
        int node = nodes->node_of[of->ranks[place]];
        of->counts[node] = (int)((size_t)collwise_node_size(nodes, node) * block_bytes);
        of->displacements[node] = (int)(place * block_bytes);
        place += (size_t)collwise_node_size(nodes, node);
    }
}

/* --- Gather ------------------------------------------------------------------------------------------------------- */

/* The blocks of the own node. */
static char *node_blocks(const block_levels *of, size_t index, size_t block_bytes) {
    return buffer_of(of, index) + of->own_place * block_bytes;
}

/* A leaf's block is sent from where it lies. */
static void add_sg(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    char *own = (char *)of->from + segment.first;
    char *blocks = is_leaf(of) ? own : node_blocks(of, index, segment.count);
    if (!is_leaf(of)) {
        collwise_copy(blocks, own, segment.count);
    }
    collwise_add_gather(to, &of->within, blocks, segment.count);
}

static void add_ng(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    collwise_add_gather(to, &of->middle, node_blocks(of, index, segment.count), segment.count);
}

static void add_copies_by_rank(collwise_rounds *to, const block_levels *of, const char *packed, collwise_part segment) {
    for (int i = 0; i < procs_of(of); i++) {
        collwise_add_copy(to, of->to + (size_t)of->ranks[i] * of->block_bytes + segment.first,
                          packed + (size_t)i * segment.count, segment.count);
    }
}

static void add_ig(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    block_levels *of = context;
    char *packed = buffer_of(of, index);
    if (uses_library(of, (size_t)procs_of(of) * segment.count)) {
        count_bytes(of, segment.count);
        collwise_add_library_gather(to, packed, of->counts, of->displacements, of->levels.top);
    } else {
        collwise_add_gather(to, &of->between, packed, segment.count);
    }
    if (of->to != NULL) {
        add_copies_by_rank(to, of, packed, segment);
    }
}

void collwise_task_gather(collwise_between between, const char *mine, char *all, size_t block_bytes, int root,
                          MPI_Comm comm, collwise_parameters with) {
    block_levels of = block_levels_of(between, root, block_bytes, comm, with);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    collwise_steps steps = {.last_lag = 1 + of.by_socket};
    of.from = mine;
    of.to = collwise_rank_in(comm) == root ? all : NULL;
    order_by_tree(&of, of.counts, root);
    make_buffers(&of, &segments, held(&of), steps.last_lag);
    add_between(&steps, "ig", 1 + of.by_socket, &of, add_ig);
    add_middle(&steps, "ng", 1, &of, add_ng);
    add_last(&steps, "sg", 0, &of, add_sg);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}

/* --- Scatter ------------------------------------------------------------------------------------------------------ */

static void add_is(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    block_levels *of = context;
    char *packed = buffer_of(of, index);
    for (int i = 0; of->from != NULL && i < procs_of(of); i++) {
        collwise_copy(packed + (size_t)i * segment.count,
                      of->from + (size_t)of->ranks[i] * of->block_bytes + segment.first, segment.count);
    }
    if (uses_library(of, (size_t)procs_of(of) * segment.count)) {
        count_bytes(of, segment.count);
        collwise_add_library_scatter(to, packed, of->counts, of->displacements, of->levels.top);
    } else {
        collwise_add_scatter(to, &of->between, packed, segment.count);
    }
}

static void add_ns(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    collwise_add_scatter(to, &of->middle, buffer_of(of, index), segment.count);
}

/* A leaf's block is received in its place. */
static void add_ss(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    char *blocks = is_leaf(of) ? of->to + segment.first : buffer_of(of, index);
    collwise_add_scatter(to, &of->within, blocks, segment.count);
    if (!is_leaf(of) && of->to != NULL) {
        collwise_add_copy(to, of->to + segment.first, blocks, segment.count);
    }
}

void collwise_task_scatter(collwise_between between, const char *all, char *mine, size_t block_bytes, int root,
                           MPI_Comm comm, collwise_parameters with) {
    block_levels of = block_levels_of(between, root, block_bytes, comm, with);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    collwise_steps steps = {.last_lag = 1 + of.by_socket};
    int is_root = collwise_rank_in(comm) == root;
    of.from = is_root ? all : NULL;
    of.to = is_root ? NULL : mine;
    order_by_tree(&of, of.counts, root);
    make_buffers(&of, &segments, held(&of), steps.last_lag);
    add_between(&steps, "is", 0, &of, add_is);
    add_middle(&steps, "ns", 1, &of, add_ns);
    add_last(&steps, "ss", 1 + of.by_socket, &of, add_ss);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}

/* --- Allgather ---------------------------------------------------------------------------------------------------- */

static void add_up(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    collwise_add_gather(to, &of->between, buffer_of(of, index), segment.count);
}

static void add_down(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    size_t bytes = (size_t)procs_of(of) * segment.count;
    collwise_add_bcast(to, &of->between.tree, buffer_of(of, index), collwise_byte_segments(collwise_whole(bytes), 0));
}

static void add_among_leaders(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    block_levels *of = context;
    char *packed = buffer_of(of, index);
    size_t *offsets = collwise_node_offsets(of->levels.nodes, segment.count, of->comm);
    if (uses_library(of, (size_t)procs_of(of) * segment.count)) {
        count_bytes(of, segment.count);
        collwise_add_library_allgather(to, packed, of->counts, of->displacements);
    } else if (of->kind == COLLWISE_BETWEEN_DOUBLING) {
        collwise_add_bruck_allgather(to, packed, offsets);
    } else {
        collwise_add_ring_allgather(to, packed, offsets);
    }
    free(offsets);
}

static void add_to_all(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    char *packed = buffer_of(of, index);
    size_t bytes = (size_t)procs_of(of) * segment.count;
    collwise_add_bcast(to, &of->within.tree, packed, collwise_byte_segments(collwise_whole(bytes), 0));
    add_copies_by_rank(to, of, packed, segment);
}

static void add_to_sockets(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    size_t bytes = (size_t)procs_of(of) * segment.count;
    collwise_add_bcast(to, &of->middle.tree, buffer_of(of, index), collwise_byte_segments(collwise_whole(bytes), 0));
}

void collwise_task_allgather(collwise_between between, char *all, size_t block_bytes, MPI_Comm comm,
                             collwise_parameters with) {
    block_levels of = block_levels_of(between, 0, block_bytes, comm, with);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    int along_tree = between <= COLLWISE_BETWEEN_BINOMIAL, goes_round = between == COLLWISE_BETWEEN_DOUBLING;
    size_t up = 1 + of.by_socket, down = up + (along_tree ? 2 : 1);
    collwise_steps steps = {.last_lag = down + of.by_socket};
    of.from = all + (size_t)collwise_rank_in(comm) * block_bytes;
    of.to = all;
    if (along_tree) {
        order_by_tree(&of, of.counts, 0);
    } else {
        order_from(&of, of.counts, goes_round ? of.levels.own_node : 0);
    }
    if (of.levels.is_leader && !along_tree && !goes_round) {
        of.own_place = (size_t)of.levels.nodes->first[of.levels.own_node];
    }
    make_buffers(&of, &segments, (size_t)procs_of(&of), steps.last_lag);
    if (along_tree) {
        add_between(&steps, "ib", up + 1, &of, add_down);
        add_between(&steps, "ig", up, &of, add_up);
    } else {
        add_between(&steps, "ia", up, &of, add_among_leaders);
    }
    add_middle(&steps, "nb", down, &of, add_to_sockets);
    add_last(&steps, "sb", steps.last_lag, &of, add_to_all);
    add_middle(&steps, "ng", 1, &of, add_ng);
    add_last(&steps, "sg", 0, &of, add_sg);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}

/* --- Alltoall ----------------------------------------------------------------------------------------------------- */

/* A process's blocks for all processes, or from all, are a row. A buffer has room for two sets of rows, which lie as
 * blocks of the own node do. */
static char *first_rows(const block_levels *of, size_t index) { return buffer_of(of, index); }
static char *second_rows(const block_levels *of, size_t index) { return buffer_of(of, index) + of->room / 2; }

static void add_row_gather(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    int procs = procs_of(of);
    char *rows = first_rows(of, index);
    for (int rank = 0; rank < procs; rank++) {
        collwise_copy(rows + (size_t)rank * segment.count, of->from + (size_t)rank * of->block_bytes + segment.first,
                      segment.count);
    }
    collwise_add_gather(to, &of->within, rows, (size_t)procs * segment.count);
}

static void add_socket_gather(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    collwise_add_gather(to, &of->middle, first_rows(of, index), (size_t)procs_of(of) * segment.count);
}

static void add_exchange(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    block_levels *of = context;
    const collwise_nodes *nodes = of->levels.nodes;
    size_t on_node = on_own_node(of), most = (size_t)nodes->largest * (size_t)procs_of(of) * segment.count;
    char *first = first_rows(of, index), *second = second_rows(of, index);
    collwise_put_by_receiving_node(second, first, segment.count, (int)on_node, of->rows, nodes);
    if (uses_library(of, most)) {
        count_bytes(of, on_node * segment.count);
        collwise_add_library_alltoall(to, second, first, of->counts, of->displacements);
    } else {
        size_t *offsets = collwise_node_offsets(nodes, on_node * segment.count, of->comm);
        collwise_add_pairwise(to, second, first, offsets);
        free(offsets);
    }
}

/* The node's leader has rows of what came from other nodes after this. */
static void put_in_rows(const block_levels *of, size_t index, size_t block_bytes) {
    if (of->levels.is_leader) {
        collwise_put_by_receiver(second_rows(of, index), first_rows(of, index), block_bytes, (int)on_own_node(of),
                                 of->rows, of->levels.nodes);
    }
}

static void add_socket_scatter(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    put_in_rows(of, index, segment.count);
    collwise_add_scatter(to, &of->middle, second_rows(of, index), (size_t)procs_of(of) * segment.count);
}

static void add_row_scatter(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    int procs = procs_of(of);
    char *rows = second_rows(of, index);
    if (!of->by_socket) {
        put_in_rows(of, index, segment.count);
    }
    collwise_add_scatter(to, &of->within, rows, (size_t)procs * segment.count);
    for (int rank = 0; rank < procs; rank++) {
        collwise_add_copy(to, of->to + (size_t)rank * of->block_bytes + segment.first,
                          rows + (size_t)rank * segment.count, segment.count);
    }
}

/* Nodes lie one after another. */
static void number_rows(block_levels *of) {
    const collwise_nodes *nodes = of->levels.nodes;
    const int *ranks = of->ranks + nodes->first[of->levels.own_node];
    for (int row = 0; row < (int)on_own_node(of); row++) {
        of->rows[nodes->place_of[ranks[row]]] = row;
    }
}

void collwise_task_alltoall(collwise_between between, const char *send, char *receive, size_t block_bytes,
                            MPI_Comm comm, collwise_parameters with) {
    block_levels of = block_levels_of(between, 0, block_bytes, comm, with);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    size_t up = 1 + of.by_socket;
    collwise_steps steps = {.last_lag = 2 * up};
    of.from = send;
    of.to = receive;
    order_from(&of, of.counts, 0);
    number_rows(&of);
    make_buffers(&of, &segments, 2 * held_on_node(&of) * (size_t)procs_of(&of), steps.last_lag);
    add_between(&steps, "ia", up, &of, add_exchange);
    add_middle(&steps, "ns", up + 1, &of, add_socket_scatter);
    add_last(&steps, "ss", steps.last_lag, &of, add_row_scatter);
    add_middle(&steps, "ng", 1, &of, add_socket_gather);
    add_last(&steps, "sg", 0, &of, add_row_gather);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}
