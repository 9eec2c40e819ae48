/* Gather, scatter, allgather and alltoall as sequences of tasks, on segments of every block. */
#include "tasks.h"

#include <limits.h>
#include <stdlib.h>

/* The calling process's part. A leader has the blocks of a segment for all processes below it packed, those of its own
 * node together. */
typedef struct {
    collwise_levels levels;
    collwise_between kind;
    MPI_Comm comm;
    collwise_block_tree between, within; /* `between` is that of leaders only */
    collwise_levels sockets;             /* if these count */
    collwise_tree to_all;                /* on the level on which each process gets its data last */
    int *ranks;                          /* of all processes, in the order in which the packed blocks of all lie */
    int *displacements, *counts;         /* in bytes, for MPI's own collectives; by node */
    size_t own_place;                    /* packed blocks in front of those of the own node */
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

/* Packs the nodes in the order of `order`, and within them processes from the leader's place on. */
static void put_in_order(block_levels *of, const int *order, int root) {
    const collwise_nodes *nodes = of->levels.nodes;
    size_t filled = 0;
    for (int i = 0; i < nodes->nodes; i++) {
        int node = order[i], size = collwise_node_size(nodes, node);
        int leader = collwise_leader_place(nodes, node, root);
        for (int place = 0; place < size; place++) {
            of->ranks[filled++] = nodes->ranks[nodes->first[node] + (leader + place) % size];
        }
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

static block_levels block_levels_of(collwise_between kind, int root, size_t block_bytes, MPI_Comm comm) {
    collwise_levels levels = collwise_levels_of(root, comm);
    const collwise_nodes *nodes = levels.nodes;
    size_t procs = (size_t)collwise_size_of(comm), count = (size_t)nodes->nodes;
    block_levels made = {.levels = levels, .kind = kind, .comm = comm, .block_bytes = block_bytes};
    size_t *sizes = collwise_allocate(procs * sizeof *sizes, comm);
    for (int place = 0; place < nodes->largest; place++) {
        sizes[place] = 1;
    }
    collwise_tree within = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, levels.leader, levels.node, 0);
    made.within = collwise_block_tree_make(&within, sizes, levels.node);
    if (levels.is_leader) {
        for (int node = 0; node < nodes->nodes; node++) {
            sizes[node] = (size_t)collwise_node_size(nodes, node);
        }
        collwise_tree between = collwise_tree_of(topology_of(kind), levels.top, levels.between, 0);
        made.between = collwise_block_tree_make(&between, sizes, levels.between);
    }
    free(sizes);
    made.ranks = collwise_allocate((procs + 2 * count) * sizeof *made.ranks, comm);
    made.counts = made.ranks + procs;
    made.displacements = made.counts + count;
    return made;
}

static void make_buffers(block_levels *of, const collwise_segment *segments, size_t blocks, size_t last_lag) {
    of->under_way = last_lag + 1;
    of->room = blocks * segments->count; /* the first segment is the longest one */
    of->buffers =
        collwise_scratch(collwise_least(of->under_way, collwise_segments_left(segments)) * of->room, of->comm);
}

static void free_block_levels(block_levels *of) {
    collwise_block_tree_free(&of->between);
    collwise_block_tree_free(&of->within);
    free(of->ranks);
    collwise_scratch_free(of->buffers);
}

static void add_step(collwise_steps *to, const char *name, size_t lag, block_levels *of, MPI_Comm comm,
                     void (*add)(collwise_rounds *, void *, collwise_part, size_t)) {
    collwise_step *added = collwise_add_step(to, name, lag, comm);
    added->add = add;
    added->context = of;
}

/* Whether MPI's own collective is to be used. Its counts and displacements are ints. */
static int uses_library(const block_levels *of, size_t most_bytes) {
    return of->kind == COLLWISE_BETWEEN_LIBRARY && collwise_has_library() && most_bytes <= INT_MAX;
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

/* A leaf's block is sent from where it lies. */
static void add_sg(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    int is_leaf = !of->levels.is_leader && of->within.total == 1;
    char *own = (char *)of->from + segment.first;
    char *blocks = is_leaf ? own : buffer_of(of, index) + of->own_place * segment.count;
    if (!is_leaf) {
        collwise_copy(blocks, own, segment.count);
    }
    collwise_add_gather(to, &of->within, blocks, segment.count);
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
    block_levels of = block_levels_of(between, root, block_bytes, comm);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    collwise_steps steps = {.last_lag = 1};
    of.from = mine;
    of.to = collwise_rank_in(comm) == root ? all : NULL;
    order_by_tree(&of, of.counts, root);
    make_buffers(&of, &segments, of.levels.is_leader ? of.between.total : of.within.total, steps.last_lag);
    if (of.levels.is_leader) {
        add_step(&steps, "ig", 1, &of, of.levels.between, add_ig);
    }
    add_step(&steps, "sg", 0, &of, of.levels.node, add_sg);
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

/* A leaf's block is received in its place. */
static void add_ss(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    int is_leaf = !of->levels.is_leader && of->within.total == 1;
    char *blocks = is_leaf ? of->to + segment.first : buffer_of(of, index);
    collwise_add_scatter(to, &of->within, blocks, segment.count);
    if (!is_leaf && of->to != NULL) {
        collwise_add_copy(to, of->to + segment.first, blocks, segment.count);
    }
}

void collwise_task_scatter(collwise_between between, const char *all, char *mine, size_t block_bytes, int root,
                           MPI_Comm comm, collwise_parameters with) {
    block_levels of = block_levels_of(between, root, block_bytes, comm);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    collwise_steps steps = {.last_lag = 1};
    int is_root = collwise_rank_in(comm) == root;
    of.from = is_root ? all : NULL;
    of.to = is_root ? NULL : mine;
    order_by_tree(&of, of.counts, root);
    make_buffers(&of, &segments, of.levels.is_leader ? of.between.total : of.within.total, steps.last_lag);
    if (of.levels.is_leader) {
        add_step(&steps, "is", 0, &of, of.levels.between, add_is);
    }
    add_step(&steps, "ss", 1, &of, of.levels.node, add_ss);
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
    collwise_add_bcast(to, &of->to_all, packed, collwise_byte_segments(collwise_whole(bytes), 0));
    add_copies_by_rank(to, of, packed, segment);
}

static void add_to_sockets(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    size_t bytes = (size_t)procs_of(of) * segment.count;
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, of->sockets.top, of->sockets.between, 0);
    collwise_add_bcast(to, &tree, buffer_of(of, index), collwise_byte_segments(collwise_whole(bytes), 0));
}

/* Each node's leader broadcasts all blocks, within the node or first between its sockets. */
static void add_last_steps(collwise_steps *to, block_levels *of, int by_socket) {
    MPI_Comm comm = of->levels.node;
    of->to_all = of->within.tree;
    if (by_socket) {
        of->sockets = collwise_socket_levels_of(0, of->comm);
        comm = of->sockets.node;
        of->to_all = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, of->sockets.leader, comm, 0);
    }
    if (by_socket && of->sockets.is_leader) {
        add_step(to, "nb", to->last_lag - 1, of, of->sockets.between, add_to_sockets);
    }
    add_step(to, "sb", to->last_lag, of, comm, add_to_all);
}

void collwise_task_allgather(collwise_between between, char *all, size_t block_bytes, MPI_Comm comm,
                             collwise_parameters with) {
    block_levels of = block_levels_of(between, 0, block_bytes, comm);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    int along_tree = between <= COLLWISE_BETWEEN_BINOMIAL, goes_round = between == COLLWISE_BETWEEN_DOUBLING;
    int by_socket = with.within == COLLWISE_WITHIN_SOCKETS;
    collwise_steps steps = {.last_lag = (along_tree ? 3 : 2) + (size_t)by_socket};
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
    if (of.levels.is_leader && along_tree) {
        add_step(&steps, "ib", 2, &of, of.levels.between, add_down);
        add_step(&steps, "ig", 1, &of, of.levels.between, add_up);
    } else if (of.levels.is_leader) {
        add_step(&steps, "ia", 1, &of, of.levels.between, add_among_leaders);
    }
    add_last_steps(&steps, &of, by_socket);
    add_step(&steps, "sg", 0, &of, of.levels.node, add_sg);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}

/* --- Alltoall ----------------------------------------------------------------------------------------------------- */

/* A process's blocks for all processes, or from all, are a row. A buffer has room for two sets of rows. */
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

static void add_exchange(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    block_levels *of = context;
    const collwise_nodes *nodes = of->levels.nodes;
    size_t on_node = on_own_node(of), most = (size_t)nodes->largest * (size_t)procs_of(of) * segment.count;
    char *first = first_rows(of, index), *second = second_rows(of, index);
    collwise_put_by_receiving_node(second, first, segment.count, (int)on_node, nodes);
    if (uses_library(of, most)) {
        count_bytes(of, on_node * segment.count);
        collwise_add_library_alltoall(to, second, first, of->counts, of->displacements);
    } else {
        size_t *offsets = collwise_node_offsets(nodes, on_node * segment.count, of->comm);
        collwise_add_pairwise(to, second, first, offsets);
        free(offsets);
    }
}

static void add_row_scatter(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const block_levels *of = context;
    int procs = procs_of(of);
    char *rows = second_rows(of, index);
    if (of->levels.is_leader) {
        collwise_put_by_receiver(rows, first_rows(of, index), segment.count, (int)on_own_node(of), of->levels.nodes);
    }
    collwise_add_scatter(to, &of->within, rows, (size_t)procs * segment.count);
    for (int rank = 0; rank < procs; rank++) {
        collwise_add_copy(to, of->to + (size_t)rank * of->block_bytes + segment.first,
                          rows + (size_t)rank * segment.count, segment.count);
    }
}

/* The leaders have the first place on their nodes, so that rows lie in the order of places. */
void collwise_task_alltoall(collwise_between between, const char *send, char *receive, size_t block_bytes,
                            MPI_Comm comm, collwise_parameters with) {
    block_levels of = block_levels_of(between, 0, block_bytes, comm);
    collwise_segment segments = collwise_byte_segments(collwise_whole(block_bytes), with.segment_bytes);
    collwise_steps steps = {.last_lag = 2};
    of.from = send;
    of.to = receive;
    order_from(&of, of.counts, 0);
    make_buffers(&of, &segments, 2 * of.within.total * (size_t)procs_of(&of), steps.last_lag);
    if (of.levels.is_leader) {
        add_step(&steps, "ia", 1, &of, of.levels.between, add_exchange);
    }
    add_step(&steps, "ss", 2, &of, of.levels.node, add_row_scatter);
    add_step(&steps, "sg", 0, &of, of.levels.node, add_row_gather);
    collwise_run_steps(&steps, segments, comm);
    free_block_levels(&of);
}
