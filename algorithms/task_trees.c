/* Broadcast, reduction, allreduce and barrier as sequences of tasks. */
#include "tasks.h"

#include <stdlib.h>

/* The calling process's part in collectives up and down trees, one of the nodes' leaders and one on each node. Of
 * several leaders on each node, every one has such trees for its share of each segment. */
typedef struct {
    collwise_levels levels;
    collwise_between kind;
    collwise_tree between, within; /* the process has no peers in `between` unless it is a leader */
    size_t between_segment_bytes;
    const collwise_operation *op; /* NULL in broadcasts */
    size_t unit;                  /* the bytes of what segments count */
    const char *own;              /* the contribution to a reduction; NULL: it is in `data` */
    char *data;                   /* where a segment's place is that in the message; NULL in `sums` */
    char *sums;                   /* two of them, */
    size_t room;                  /* with so many bytes each */
    size_t share, shares;
    collwise_window *window; /* NULL: messages within nodes */
    collwise_transfer sb, sr;
} two_levels;

collwise_topology collwise_between_topology(collwise_between kind, int in_order) {
    switch (kind) {
    case COLLWISE_BETWEEN_CHAIN:
        return COLLWISE_CHAIN;
    case COLLWISE_BETWEEN_BINARY:
        return in_order ? COLLWISE_IN_ORDER_BINOMIAL : COLLWISE_BINARY;
    default:
        return COLLWISE_IN_ORDER_BINOMIAL;
    }
}

static two_levels two_levels_of(collwise_between kind, const collwise_operation *op, int root, MPI_Comm comm,
                                collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(root, comm);
    /* MPI's own reduction takes elements as they lie in memory. */
    int has_library = collwise_has_library() && (op == NULL || op->contiguous);
    two_levels made = {.levels = levels,
                       .kind = kind == COLLWISE_BETWEEN_LIBRARY && !has_library ? COLLWISE_BETWEEN_BINOMIAL : kind,
                       .between = {.parent = -1},
                       /* no parameter where the library moves segments */
                       .between_segment_bytes = kind == COLLWISE_BETWEEN_LIBRARY ? 0 : with.between_segment_bytes,
                       .op = op,
                       .unit = op == NULL ? 1 : op->element_bytes,
                       .shares = 1};
    made.within = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, levels.leader, levels.node, 0);
    if (levels.is_leader) {
        collwise_topology topology = collwise_between_topology(kind, op != NULL && !op->commutative);
        made.between = collwise_tree_of(topology, levels.top, levels.between, 0);
    }
    return made;
}

static int on_own_node(const two_levels *of) { return collwise_node_size(of->levels.nodes, of->levels.own_node); }

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static collwise_part share_of(const two_levels *of, collwise_part segment) {
    collwise_part part = collwise_equal_part(segment.count, of->shares, of->share);
    return (collwise_part){.first = segment.first + part.first, .count = part.count};
}

/* The place of a segment's sum. Data to which the process adds nothing is sent from its own place. */
static char *sum_of(const two_levels *of, collwise_part share, size_t index) {
    if (of->data != NULL) {
        return of->data + share.first * of->unit;
    }
    return of->sums != NULL ? of->sums + index % 2 * of->room : (char *)of->own + share.first * of->unit;
}

typedef void adder(collwise_rounds *to, void *context, collwise_part segment, size_t index);

static void add_ib(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    collwise_part share = share_of(of, segment);
    char *data = of->data + share.first * of->unit;
    size_t bytes = share.count * of->unit;
    (void)index;
    if (of->kind == COLLWISE_BETWEEN_LIBRARY) {
        collwise_add_library_bcast(to, data, bytes, of->levels.top);
    } else {
        collwise_segment inner = collwise_byte_segments(collwise_whole(bytes), of->between_segment_bytes);
        collwise_add_bcast(to, &of->between, data, inner);
    }
}

static void add_sb(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    two_levels *of = context;
    collwise_part share = share_of(of, segment);
    char *data = of->data + share.first * of->unit;
    size_t bytes = share.count * of->unit;
    (void)index;
    if (of->window != NULL) {
        collwise_add_window_bcast(to, &of->sb, of->window, of->levels.leader, data, bytes);
    } else {
        collwise_add_bcast(to, &of->within, data, collwise_byte_segments(collwise_whole(bytes), 0));
    }
}

/* The sum of the share so far; a process's first step makes it of its own contribution. */
static char *start_sum(const two_levels *of, collwise_part segment, size_t index, int is_first) {
    collwise_part share = share_of(of, segment);
    char *sum = sum_of(of, share, index);
    const char *own = of->own == NULL ? sum : of->own + share.first * of->unit;
    if (is_first && own != sum) {
        collwise_copy(sum, own, share.count * of->unit);
    }
    return sum;
}

static void add_sr(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    two_levels *of = context;
    size_t elements = share_of(of, segment).count;
    char *sum = start_sum(of, segment, index, 1);
    if (of->window != NULL) {
        collwise_add_window_reduce(to, &of->sr, of->window, of->levels.leader, sum, elements, of->op);
    } else {
        collwise_add_reduce(to, &of->within, sum, collwise_segments_of(collwise_whole(elements), elements), of->op);
    }
}

static void add_ir(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    size_t elements = share_of(of, segment).count;
    char *sum = start_sum(of, segment, index, on_own_node(of) == 1);
    if (of->kind == COLLWISE_BETWEEN_LIBRARY) {
        collwise_add_library_reduce(to, sum, elements, of->op, of->levels.top);
    } else {
        collwise_segment inner = collwise_element_segments(collwise_whole(elements), of->op, of->between_segment_bytes);
        collwise_add_reduce(to, &of->between, sum, inner, of->op);
    }
}

static void add_ia(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    char *data = of->data + segment.first * of->unit;
    (void)index;
    if (of->kind == COLLWISE_BETWEEN_RING && of->op->commutative) {
        collwise_add_ring_allreduce(to, data, segment.count, of->op);
    } else {
        collwise_add_doubling_allreduce(to, data, segment.count, of->op);
    }
}

static void add_between(collwise_steps *to, const char *name, size_t lag, adder *add, two_levels *of) {
    if (of->levels.is_leader && of->levels.nodes->nodes > 1) {
        collwise_step *added = collwise_add_step(to, name, lag, of->levels.between);
        added->add = add;
        added->context = of;
    }
}

static void add_within(collwise_steps *to, const char *name, size_t lag, adder *add, two_levels *of) {
    if (on_own_node(of) > 1) {
        collwise_step *added = collwise_add_step(to, name, lag, of->levels.node);
        added->add = add;
        added->context = of;
    }
}

static void use_window(two_levels *of, collwise_parameters with, MPI_Comm comm) {
    if (with.within != COLLWISE_WITHIN_MESSAGES && collwise_window_takes(of->unit)) {
        of->window = collwise_window_of(&of->levels, (collwise_within)with.within, comm);
    }
}

/* --- Broadcast ---------------------------------------------------------------------------------------------------- */

void collwise_task_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                         collwise_parameters with) {
    two_levels of = two_levels_of(between, NULL, root, comm, with);
    collwise_steps steps = {.last_lag = 1};
    of.data = data;
    use_window(&of, with, comm);
    add_between(&steps, "ib", 0, add_ib, &of);
    add_within(&steps, "sb", 1, add_sb, &of);
    collwise_run_steps(&steps, collwise_byte_segments(collwise_whole(bytes), with.segment_bytes), comm);
}

/* --- Reduction ---------------------------------------------------------------------------------------------------- */

/* The result is made at `top`, in `result` there. */
static void reduce_to(int top, collwise_between between, const char *data, char *result, size_t elements,
                      const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    two_levels of = two_levels_of(between, op, top, comm, with);
    collwise_segment segments = collwise_element_segments(collwise_whole(elements), op, with.segment_bytes);
    collwise_steps steps = {.last_lag = 1};
    use_window(&of, with, comm);
    int combines = of.levels.is_leader || (of.within.child_count > 0 && of.window == NULL);
    of.own = data;
    of.data = collwise_rank_in(comm) == top ? result : NULL;
    of.room = segments.count * op->element_bytes;
    of.sums = of.data == NULL && combines ? collwise_scratch(2 * of.room, comm) : NULL;
    add_between(&steps, "ir", 1, add_ir, &of);
    add_within(&steps, "sr", 0, add_sr, &of);
    collwise_run_steps(&steps, segments, comm);
    collwise_scratch_free(of.sums);
}

void collwise_task_reduce(collwise_between between, const char *data, char *result, size_t elements,
                          const collwise_operation *op, int root, MPI_Comm comm, collwise_parameters with) {
    int rank = collwise_rank_in(comm), top = op->commutative ? root : 0;
    size_t bytes = elements * op->element_bytes;
    if (!op->commutative && !collwise_levels_of(top, comm).nodes->in_order) {
        collwise_reduce_binomial(data, result, elements, op, root, comm, with);
        return;
    }
    char *at_top = rank == top && rank != root ? collwise_scratch(bytes, comm) : result;
    reduce_to(top, between, data, at_top, elements, op, comm, with);
    if (top != root && rank == top) {
        collwise_send(at_top, bytes, root, comm);
        collwise_scratch_free(at_top);
    } else if (top != root && rank == root) {
        collwise_receive(result, bytes, top, comm);
    }
}

/* --- Allreduce ---------------------------------------------------------------------------------------------------- */

static int goes_up_and_down(collwise_between kind) {
    return kind != COLLWISE_BETWEEN_RING && kind != COLLWISE_BETWEEN_DOUBLING;
}

void collwise_task_allreduce(collwise_between between, char *data, size_t elements, const collwise_operation *op,
                             MPI_Comm comm, collwise_parameters with) {
    two_levels of = two_levels_of(between, op, 0, comm, with);
    if (!op->commutative && !of.levels.nodes->in_order) {
        collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
        return;
    }
    collwise_steps steps = {.last_lag = goes_up_and_down(of.kind) ? 3 : 2};
    of.data = data;
    use_window(&of, with, comm);
    if (goes_up_and_down(of.kind)) {
        add_between(&steps, "ib", 2, add_ib, &of);
        add_between(&steps, "ir", 1, add_ir, &of);
    } else {
        add_between(&steps, "ia", 1, add_ia, &of);
    }
    add_within(&steps, "sb", steps.last_lag, add_sb, &of);
    add_within(&steps, "sr", 0, add_sr, &of);
    collwise_run_steps(&steps, collwise_element_segments(collwise_whole(elements), op, with.segment_bytes), comm);
}

/* --- Barrier ------------------------------------------------------------------------------------------------------ */

static void add_barrier_sr(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)segment, (void)index;
    collwise_add_signals_up(to, &of->within);
}

static void add_barrier_sb(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)segment, (void)index;
    collwise_add_signals_down(to, &of->within);
}

static void add_barrier_ir(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)segment, (void)index;
    collwise_add_signals_up(to, &of->between);
}

static void add_barrier_ib(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)segment, (void)index;
    collwise_add_signals_down(to, &of->between);
}

static void add_barrier_ia(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)segment, (void)index;
    if (of->kind == COLLWISE_BETWEEN_LIBRARY) {
        collwise_add_library_barrier(to);
    } else {
        collwise_add_dissemination(to);
    }
}

void collwise_task_barrier(collwise_between between, MPI_Comm comm) {
    two_levels of = two_levels_of(between, NULL, 0, comm, (collwise_parameters){0});
    int along_tree = goes_up_and_down(of.kind) && of.kind != COLLWISE_BETWEEN_LIBRARY;
    collwise_steps steps = {.last_lag = along_tree ? 3 : 2};
    if (along_tree) {
        add_between(&steps, "ib", 2, add_barrier_ib, &of);
        add_between(&steps, "ir", 1, add_barrier_ir, &of);
    } else {
        add_between(&steps, "ia", 1, add_barrier_ia, &of);
    }
    add_within(&steps, "sb", steps.last_lag, add_barrier_sb, &of);
    add_within(&steps, "sr", 0, add_barrier_sr, &of);
    collwise_run_steps(&steps, collwise_segments_of(collwise_whole(1), 1), comm);
}

/* --- Several leaders on each node --------------------------------------------------------------------------------- */

/* The number of leaders on each node: as many as are wanted, or as the smallest node has processes. */
static int leaders_of(const collwise_nodes *nodes, int wanted) {
    int leaders = wanted;
    for (int node = 0; node < nodes->nodes; node++) {
        int size = collwise_node_size(nodes, node);
        leaders = size < leaders ? size : leaders;
    }
    return leaders;
}

/* The trees of each leader's share: those whose root is the process of that place on node `top`. Within nodes they are
 * flat. Two of them may have messages from the same process to the same process in one task, and all processes start
 * these in the same order if none waits for another one. */
static two_levels *trees_of_leaders(collwise_between between, char *data, const collwise_operation *op, int top,
                                    int leaders, MPI_Comm comm, collwise_parameters with) {
    const collwise_nodes *nodes = collwise_levels_of(0, comm).nodes;
    two_levels *made = collwise_allocate((size_t)leaders * sizeof *made, comm);
    for (int place = 0; place < leaders; place++) {
        made[place] = two_levels_of(between, op, nodes->ranks[nodes->first[top] + place], comm, with);
        made[place].data = data;
        made[place].share = (size_t)place;
        made[place].shares = (size_t)leaders;
        made[place].within = collwise_tree_of(COLLWISE_FLAT, made[place].levels.leader, made[place].levels.node, 0);
    }
    return made;
}

/* On the root's node the broadcast within the node comes first: each leader gets its share from the root by it. */
void collwise_multi_leader_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    two_levels at_root = two_levels_of(between, NULL, root, comm, with);
    at_root.data = data;
    int leaders = leaders_of(at_root.levels.nodes, with.leaders), top = at_root.levels.top;
    int rank = collwise_rank_in(comm), is_on_top = at_root.levels.own_node == top;
    two_levels *trees = trees_of_leaders(between, data, NULL, top, leaders, comm, with);
    collwise_steps steps = {.last_lag = 1};
    for (int i = 0; i < leaders; i++) {
        add_between(&steps, "ib", is_on_top && rank != root ? 1 : 0, add_ib, &trees[i]);
    }
    if (is_on_top) {
        add_within(&steps, "sb", 0, add_sb, &at_root);
    }
    for (int i = 0; i < leaders && !is_on_top; i++) {
        add_within(&steps, "sb", 1, add_sb, &trees[i]);
    }
    collwise_run_steps(&steps, collwise_byte_segments(collwise_whole(bytes), with.segment_bytes), comm);
    free(trees);
}

void collwise_multi_leader_allreduce(collwise_between between, char *data, size_t elements,
                                     const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    const collwise_nodes *nodes = collwise_levels_of(0, comm).nodes;
    int leaders = leaders_of(nodes, with.leaders);
    if (!op->commutative || leaders == 1) {
        with.within = COLLWISE_WITHIN_MESSAGES;
        collwise_task_allreduce(between, data, elements, op, comm, with);
        return;
    }
    two_levels *trees = trees_of_leaders(between, data, op, 0, leaders, comm, with);
    collwise_steps steps = {.last_lag = 3};
    for (int i = 0; i < leaders; i++) {
        add_between(&steps, "ib", 2, add_ib, &trees[i]);
        add_between(&steps, "ir", 1, add_ir, &trees[i]);
    }
    for (int i = 0; i < leaders; i++) {
        add_within(&steps, "sb", 3, add_sb, &trees[i]);
        add_within(&steps, "sr", 0, add_sr, &trees[i]);
    }
    collwise_run_steps(&steps, collwise_element_segments(collwise_whole(elements), op, with.segment_bytes), comm);
    free(trees);
}
