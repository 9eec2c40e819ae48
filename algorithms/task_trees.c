/* Broadcast, reduction, allreduce and barrier as sequences of tasks. */
#include "tasks.h"

#include <stdlib.h>

/* The levels, the last one within nodes or, if sockets count, within these; NODE then is between the sockets of a node.
 */
enum { NETWORK, NODE, LAST, LEVELS };

typedef struct levels levels;

/* The calling process's part in a collective up and down the tree of one level. */
typedef struct {
    const levels *of;
    MPI_Comm comm;
    int size; /* the processes on the level; 0: this one is not among them, and has no peers in its tree */
    int root;
    collwise_tree tree;
    int is_first_up;         /* no other process's contribution has reached this one on the levels below */
    collwise_window *window; /* NULL: messages */
    collwise_transfer down, up;
} level;

/* The calling process's part on all levels. Of several leaders on each node, every one has such a part for its share of
 * each segment. */
struct levels {
    const collwise_nodes *nodes;
    int own_node, top;
    level at[LEVELS];
    int depth; /* the levels in use, 2 or 3 */
    collwise_between kind;
    size_t between_segment_bytes;
    const collwise_operation *op; /* NULL in broadcasts */
    size_t unit;                  /* the bytes of what segments count */
    const char *own;              /* the contribution to a reduction; NULL: it is in `data` */
    char *data;                   /* where a segment's place is that in the message; NULL in `sums` */
    char *sums;                   /* one for each segment under way, */
    size_t room;                  /* with so many bytes each */
    size_t share, shares;
};

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

static void set_level(levels *of, int which, collwise_topology topology, int root, MPI_Comm comm) {
    level *at = &of->at[which];
    at->comm = comm;
    at->size = collwise_size_of(comm);
    at->root = root;
    at->tree = collwise_tree_of(topology, root, comm, 0);
}

/* Within nodes, or between and within their sockets. Sockets do not count on a node where ranks would be combined out
 * of order. */
static void set_levels_within(levels *of, const collwise_levels *node, int root, MPI_Comm comm) {
    const collwise_topology topology = COLLWISE_IN_ORDER_BINOMIAL;
    if (of->depth == LEVELS) {
        collwise_levels sockets = collwise_socket_levels_of(root, comm);
        if (of->op == NULL || of->op->commutative || sockets.nodes->in_order) {
            set_level(of, LAST, topology, sockets.leader, sockets.node);
            if (sockets.is_leader) {
                set_level(of, NODE, topology, sockets.top, sockets.between);
            }
            return;
        }
    }
    set_level(of, LAST, topology, node->leader, node->node);
}

static void make_levels(levels *made, collwise_between kind, const collwise_operation *op, int root, MPI_Comm comm,
                        collwise_parameters with, collwise_within within) {
    collwise_levels found = collwise_levels_of(root, comm);
    /* MPI's own reduction takes elements as they lie in memory. */
    int has_library = collwise_has_library() && (op == NULL || op->contiguous);
    *made = (levels){.nodes = found.nodes,
                     .own_node = found.own_node,
                     .top = found.top,
                     .depth = within == COLLWISE_WITHIN_SOCKETS ? LEVELS : LEVELS - 1,
                     .kind = kind == COLLWISE_BETWEEN_LIBRARY && !has_library ? COLLWISE_BETWEEN_BINOMIAL : kind,
                     /* no parameter where the library moves segments */
                     .between_segment_bytes = kind == COLLWISE_BETWEEN_LIBRARY ? 0 : with.between_segment_bytes,
                     .op = op,
                     .unit = op == NULL ? 1 : op->element_bytes,
                     .shares = 1};
    if (found.is_leader) {
        collwise_topology topology = collwise_between_topology(kind, op != NULL && !op->commutative);
        set_level(made, NETWORK, topology, found.top, found.between);
    }
    set_levels_within(made, &found, root, comm);
    int is_first_up = 1;
    for (int which = LAST; which >= NETWORK; which--) {
        made->at[which].of = made;
        made->at[which].is_first_up = is_first_up;
        is_first_up = is_first_up && made->at[which].size <= 1;
    }
    if (within == COLLWISE_WITHIN_SHARED || within == COLLWISE_WITHIN_ONE_SIDED) {
        made->at[LAST].window = collwise_window_takes(made->unit) ? collwise_window_of(&found, within, comm) : NULL;
    }
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static collwise_part share_of(const levels *of, collwise_part segment) {
    collwise_part part = collwise_equal_part(segment.count, of->shares, of->share);
    return (collwise_part){.first = segment.first + part.first, .count = part.count};
}

/* The place of a segment's sum. Data to which the process adds nothing is sent from its own place. */
static char *sum_of(const levels *of, collwise_part share, size_t index) {
    if (of->data != NULL) {
        return of->data + share.first * of->unit;
    }
    return of->sums != NULL ? of->sums + index % (size_t)of->depth * of->room
                            : (char *)of->own + share.first * of->unit;
}

typedef void adder(collwise_rounds *to, void *context, collwise_part segment, size_t index);

static int uses_library(const level *at) {
    return at == &at->of->at[NETWORK] && at->of->kind == COLLWISE_BETWEEN_LIBRARY;
}

/* Segments go in pieces between nodes only. */
static size_t piece_bytes(const level *at) { return at == &at->of->at[NETWORK] ? at->of->between_segment_bytes : 0; }

static void add_bcast(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    level *at = context;
    collwise_part share = share_of(at->of, segment);
    char *data = at->of->data + share.first * at->of->unit;
    size_t bytes = share.count * at->of->unit;
    (void)index;
    if (uses_library(at)) {
        collwise_add_library_bcast(to, data, bytes, at->root);
    } else if (at->window != NULL) {
        collwise_add_window_bcast(to, &at->down, at->window, at->root, data, bytes);
    } else {
        collwise_add_bcast(to, &at->tree, data, collwise_byte_segments(collwise_whole(bytes), piece_bytes(at)));
    }
}

/* The sum of the share so far; a process's first step makes it of its own contribution. */
static char *start_sum(const level *at, collwise_part share, size_t index) {
    const levels *of = at->of;
    char *sum = sum_of(of, share, index);
    const char *own = of->own == NULL ? sum : of->own + share.first * of->unit;
    if (at->is_first_up && own != sum) {
        collwise_copy(sum, own, share.count * of->unit);
    }
    return sum;
}

static void add_reduce(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    level *at = context;
    const collwise_operation *op = at->of->op;
    collwise_part share = share_of(at->of, segment);
    char *sum = start_sum(at, share, index);
    if (uses_library(at)) {
        collwise_add_library_reduce(to, sum, share.count, op, at->root);
    } else if (at->window != NULL) {
        collwise_add_window_reduce(to, &at->up, at->window, at->root, sum, share.count, op);
    } else {
        collwise_segment pieces = collwise_element_segments(collwise_whole(share.count), op, piece_bytes(at));
        collwise_add_reduce(to, &at->tree, sum, pieces, op);
    }
}

static void add_allreduce(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const levels *of = ((level *)context)->of;
    char *data = of->data + segment.first * of->unit;
    (void)index;
    if (of->kind == COLLWISE_BETWEEN_RING && of->op->commutative) {
        collwise_add_ring_allreduce(to, data, segment.count, of->op);
    } else {
        collwise_add_doubling_allreduce(to, data, segment.count, of->op);
    }
}

static void add_step(collwise_steps *to, const char *name, size_t lag, adder *add, level *at) {
    if (at->size > 1) {
        collwise_step *added = collwise_add_step(to, name, lag, at->comm);
        added->add = add;
        added->context = at;
    }
}

/* How many levels a segment has passed on its way down before it comes to that one. */
static size_t passed(const levels *of, int which) { return which == LAST ? (size_t)of->depth - 1 : (size_t)which; }

/* A segment's step down to one level, if it sets out with that lag, or its step up from one. */
static void add_down(collwise_steps *to, levels *of, int which, size_t lag, adder *add) {
    const char *const names[LEVELS] = {"ib", "nb", "sb"};
    add_step(to, names[which], lag + passed(of, which), add, &of->at[which]);
}

static void add_up(collwise_steps *to, levels *of, int which, adder *add) {
    const char *const names[LEVELS] = {"ir", "nr", "sr"};
    add_step(to, names[which], (size_t)of->depth - 1 - passed(of, which), add, &of->at[which]);
}

/* --- Broadcast ---------------------------------------------------------------------------------------------------- */

void collwise_task_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                         collwise_parameters with) {
    levels of;
    make_levels(&of, between, NULL, root, comm, with, (collwise_within)with.within);
    collwise_steps steps = {.last_lag = (size_t)of.depth - 1};
    of.data = data;
    for (int which = NETWORK; which < LEVELS; which++) {
        add_down(&steps, &of, which, 0, add_bcast);
    }
    collwise_run_steps(&steps, collwise_byte_segments(collwise_whole(bytes), with.segment_bytes), comm);
}

/* --- Reduction ---------------------------------------------------------------------------------------------------- */

/* Whether the process makes sums of its own and other contributions, or receives one to pass on. */
static int combines(const levels *of) {
    const level *last = &of->at[LAST];
    return of->at[NETWORK].size > 0 || of->at[NODE].size > 0 || (last->tree.child_count > 0 && last->window == NULL);
}

/* The result is made at `top`, in `result` there. */
static void reduce_to(int top, collwise_between between, const char *data, char *result, size_t elements,
                      const collwise_operation *op, MPI_Comm comm, collwise_parameters with) {
    levels of;
    make_levels(&of, between, op, top, comm, with, (collwise_within)with.within);
    collwise_segment segments = collwise_element_segments(collwise_whole(elements), op, with.segment_bytes);
    collwise_steps steps = {.last_lag = (size_t)of.depth - 1};
    of.own = data;
    of.data = collwise_rank_in(comm) == top ? result : NULL;
    of.room = segments.count * op->element_bytes;
    of.sums = of.data == NULL && combines(&of) ? collwise_scratch((size_t)of.depth * of.room, comm) : NULL;
    for (int which = NETWORK; which < LEVELS; which++) {
        add_up(&steps, &of, which, add_reduce);
    }
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
    if (!op->commutative && !collwise_levels_of(0, comm).nodes->in_order) {
        collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
        return;
    }
    levels of;
    make_levels(&of, between, op, 0, comm, with, (collwise_within)with.within);
    size_t up = (size_t)of.depth - 1, down = goes_up_and_down(of.kind) ? up + 1 : up;
    collwise_steps steps = {.last_lag = up + down};
    of.data = data;
    if (down == up) {
        add_step(&steps, "ia", up, add_allreduce, &of.at[NETWORK]);
    }
    for (int which = down == up ? NODE : NETWORK; which < LEVELS; which++) {
        add_down(&steps, &of, which, down, add_bcast);
        add_up(&steps, &of, which, add_reduce);
    }
    collwise_run_steps(&steps, collwise_element_segments(collwise_whole(elements), op, with.segment_bytes), comm);
}

/* --- Barrier ------------------------------------------------------------------------------------------------------ */

static void add_signals_up(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    (void)segment, (void)index;
    collwise_add_signals_up(to, &((level *)context)->tree);
}

static void add_signals_down(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    (void)segment, (void)index;
    collwise_add_signals_down(to, &((level *)context)->tree);
}

static void add_barrier(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    (void)segment, (void)index;
    if (uses_library(context)) {
        collwise_add_library_barrier(to);
    } else {
        collwise_add_dissemination(to);
    }
}

void collwise_task_barrier(collwise_between between, MPI_Comm comm, collwise_parameters with) {
    levels of;
    int by_socket = with.within == COLLWISE_WITHIN_SOCKETS;
    make_levels(&of, between, NULL, 0, comm, with, by_socket ? COLLWISE_WITHIN_SOCKETS : COLLWISE_WITHIN_MESSAGES);
    int along_tree = goes_up_and_down(of.kind) && of.kind != COLLWISE_BETWEEN_LIBRARY;
    size_t up = (size_t)of.depth - 1, down = along_tree ? up + 1 : up;
    collwise_steps steps = {.last_lag = up + down};
    if (!along_tree) {
        add_step(&steps, "ia", up, add_barrier, &of.at[NETWORK]);
    }
    for (int which = along_tree ? NETWORK : NODE; which < LEVELS; which++) {
        add_down(&steps, &of, which, down, add_signals_down);
        add_up(&steps, &of, which, add_signals_up);
    }
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
static levels *trees_of_leaders(collwise_between between, char *data, const collwise_operation *op, int top,
                                int leaders, MPI_Comm comm, collwise_parameters with) {
    const collwise_nodes *nodes = collwise_levels_of(0, comm).nodes;
    levels *made = collwise_allocate((size_t)leaders * sizeof *made, comm);
    for (int place = 0; place < leaders; place++) {
        int root = nodes->ranks[nodes->first[top] + place];
        make_levels(&made[place], between, op, root, comm, with, COLLWISE_WITHIN_MESSAGES);
        level *last = &made[place].at[LAST];
        last->tree = collwise_tree_of(COLLWISE_FLAT, last->root, last->comm, 0);
        made[place].data = data;
        made[place].share = (size_t)place;
        made[place].shares = (size_t)leaders;
    }
    return made;
}

/* On the root's node the broadcast within the node comes first: each leader gets its share from the root by it. */
void collwise_multi_leader_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                                 collwise_parameters with) {
    levels at_root;
    make_levels(&at_root, between, NULL, root, comm, with, COLLWISE_WITHIN_MESSAGES);
    at_root.data = data;
    int leaders = leaders_of(at_root.nodes, with.leaders), top = at_root.top;
    int rank = collwise_rank_in(comm), is_on_top = at_root.own_node == top;
    levels *trees = trees_of_leaders(between, data, NULL, top, leaders, comm, with);
    collwise_steps steps = {.last_lag = 1};
    for (int i = 0; i < leaders; i++) {
        add_down(&steps, &trees[i], NETWORK, is_on_top && rank != root ? 1 : 0, add_bcast);
    }
    if (is_on_top) {
        add_step(&steps, "sb", 0, add_bcast, &at_root.at[LAST]);
    }
    for (int i = 0; i < leaders && !is_on_top; i++) {
        add_down(&steps, &trees[i], LAST, 0, add_bcast);
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
    levels *trees = trees_of_leaders(between, data, op, 0, leaders, comm, with);
    collwise_steps steps = {.last_lag = 3};
    for (int which = NETWORK; which < LEVELS; which++) {
        for (int i = 0; i < leaders; i++) {
            add_down(&steps, &trees[i], which, 2, add_bcast);
            add_up(&steps, &trees[i], which, add_reduce);
        }
    }
    collwise_run_steps(&steps, collwise_element_segments(collwise_whole(elements), op, with.segment_bytes), comm);
    free(trees);
}
