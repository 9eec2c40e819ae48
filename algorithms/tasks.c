/* Sequences of tasks, and broadcast, reduction and allreduce as such sequences. */
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

/* --- Sequences ---------------------------------------------------------------------------------------------------- */

enum { NAME_BYTES = 32 };

static collwise_part segment_at(const collwise_segment *segments, size_t index) {
    size_t first = segments->first + index * segments->size;
    return (collwise_part){.first = first, .count = collwise_least(segments->size, segments->end - first)};
}

/* Starts the step if it belongs to the task. Returns whether it does. */
static int start_step(collwise_step *step, size_t task, const collwise_segment *segments, size_t count) {
    if (task < step->lag || task - step->lag >= count) {
        return 0;
    }
    size_t index = task - step->lag;
    collwise_rounds_clear(&step->rounds);
    step->add(&step->rounds, step->context, segment_at(segments, index), index);
    collwise_rounds_start(&step->rounds);
    return 1;
}

/* The names of the steps under way, the latest of a segment's way first. */
static void name_task(char name[NAME_BYTES], const char *const *by_lag, size_t last_lag) {
    name[0] = '\0';
    for (size_t lag = last_lag + 1; lag-- > 0;) {
        if (by_lag[lag] != NULL) {
            strcat(name, by_lag[lag]);
        }
    }
}

enum { MOST_LAGS = 8, MOST_STEPS = 4 * MOST_LAGS };

static void run_task(collwise_step *steps, int count, size_t task, size_t last_lag, const collwise_segment *segments,
                     size_t segment_count, const collwise_observer *observer) {
    collwise_rounds *under_way[MOST_STEPS] = {NULL};
    const char *by_lag[MOST_LAGS] = {NULL};
    int started = 0;
    for (int i = 0; i < count; i++) {
        int is_wanted = observer == NULL || observer->steps == NULL || strstr(observer->steps, steps[i].name) != NULL;
        if (is_wanted && start_step(&steps[i], task, segments, segment_count)) {
            under_way[started++] = &steps[i].rounds;
            by_lag[steps[i].lag] = steps[i].name;
        }
    }
    collwise_rounds_wait(under_way, started);
    if (observer != NULL && observer->after != NULL) {
        char name[NAME_BYTES];
        name_task(name, by_lag, last_lag);
        observer->after(observer->context, &(collwise_task){.index = task, .name = name});
    }
}

void collwise_run_steps(collwise_step *steps, int count, size_t last_lag, collwise_segment segments, MPI_Comm comm) {
    const collwise_observer *observer = collwise_observer_of(comm);
    size_t segment_count = collwise_segments_left(&segments), tasks = segment_count + last_lag, first = 0, end = tasks;
    if (observer != NULL) {
        first = observer->first_task;
        end = observer->end_task == 0 ? tasks : collwise_least(observer->end_task, tasks);
    }
    for (int i = 0; i < count; i++) {
        steps[i].rounds = collwise_rounds_make(steps[i].hops, steps[i].comm);
    }
    for (size_t task = first; task < end; task++) {
        run_task(steps, count, task, last_lag, &segments, segment_count, observer);
    }
    for (int i = 0; i < count; i++) {
        collwise_rounds_free(&steps[i].rounds);
    }
}

/* --- Trees over two levels ---------------------------------------------------------------------------------------- */

/* The calling process's part in collectives up and down trees, one of the nodes' leaders and one on each node. */
typedef struct {
    collwise_levels levels;
    collwise_between kind;
    collwise_tree between, within; /* the process has no peers in `between` unless it is a leader */
    collwise_parameters with;
    const collwise_operation *op; /* NULL in broadcasts */
    size_t unit;                  /* the bytes of what segments count */
    char *data;
} two_levels;

/* In-order trees are those of which subtrees are consecutive ranks, as operations that do not commute need. */
static collwise_topology topology_of(collwise_between kind, int in_order) {
    if (kind == COLLWISE_BETWEEN_CHAIN) {
        return COLLWISE_CHAIN;
    }
    return kind == COLLWISE_BETWEEN_BINARY && !in_order ? COLLWISE_BINARY : COLLWISE_IN_ORDER_BINOMIAL;
}

static two_levels two_levels_of(collwise_between kind, char *data, const collwise_operation *op, int root,
                                MPI_Comm comm, collwise_parameters with) {
    collwise_levels levels = collwise_levels_of(root, comm);
    int packs = op != NULL && !op->contiguous; /* MPI's own reduction takes elements as they lie in memory */
    two_levels made = {.levels = levels,
                       .kind = packs && kind == COLLWISE_BETWEEN_LIBRARY ? COLLWISE_BETWEEN_BINOMIAL : kind,
                       .between = {.parent = -1},
                       .with = with,
                       .op = op,
                       .unit = op == NULL ? 1 : op->element_bytes,
                       .data = data};
    made.within = collwise_tree_of(COLLWISE_IN_ORDER_BINOMIAL, levels.leader, levels.node, 0);
    if (levels.is_leader) {
        collwise_topology topology = topology_of(kind, op != NULL && !op->commutative);
        made.between = collwise_tree_of(topology, levels.top, levels.between, 0);
    }
    return made;
}

/* How many edges lead from the process up to the root of a tree, and down to a leaf. */
static int edges_up(const collwise_tree *tree) {
    int count = 0;
    for (collwise_tree at = *tree; at.parent >= 0; count++) {
        at = collwise_tree_at(at.topology, at.procs, at.root, at.parent, 0);
    }
    return count;
}

static int edges_down(const collwise_tree *tree) {
    int count = 0;
    for (collwise_tree at = *tree; at.child_count > 0; count++) {
        at = collwise_tree_at(at.topology, at.procs, at.root, collwise_tree_child(&at, 0), 0);
    }
    return count;
}

static void add_ib(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    char *data = of->data + segment.first * of->unit;
    size_t bytes = segment.count * of->unit;
    (void)index;
    if (of->kind == COLLWISE_BETWEEN_LIBRARY) {
        collwise_add_library_bcast(to, data, bytes, of->levels.top);
    } else {
        collwise_segment inner = collwise_byte_segments(collwise_whole(bytes), of->with.between_segment_bytes);
        collwise_add_bcast(to, &of->between, data, inner);
    }
}

static void add_sb(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)index;
    collwise_segment whole = collwise_byte_segments(collwise_whole(segment.count * of->unit), 0);
    collwise_add_bcast(to, &of->within, of->data + segment.first * of->unit, whole);
}

static void add_ir(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    char *sum = of->data + segment.first * of->unit;
    (void)index;
    if (of->kind == COLLWISE_BETWEEN_LIBRARY) {
        collwise_add_library_reduce(to, sum, segment.count, of->op, of->levels.top);
    } else {
        collwise_segment inner =
            collwise_element_segments(collwise_whole(segment.count), of->op, of->with.between_segment_bytes);
        collwise_add_reduce(to, &of->between, sum, inner, of->op);
    }
}

static void add_sr(collwise_rounds *to, void *context, collwise_part segment, size_t index) {
    const two_levels *of = context;
    (void)index;
    collwise_add_reduce(to, &of->within, of->data + segment.first * of->unit,
                        collwise_segments_of(collwise_whole(segment.count), segment.count), of->op);
}

/* The steps that the process takes part in. */
typedef struct {
    collwise_step list[MOST_STEPS];
    int count;
} step_list;

static collwise_step *add_step(step_list *to, const char *name, size_t lag) {
    collwise_step *added = &to->list[to->count++];
    *added = (collwise_step){.name = name, .lag = lag};
    return added;
}

static void add_between(step_list *to, const char *name, size_t lag, two_levels *of) {
    if (of->levels.is_leader && of->levels.nodes->nodes > 1) {
        collwise_step *added = add_step(to, name, lag);
        added->add = name[1] == 'b' ? add_ib : add_ir;
        added->hops = name[1] == 'b' ? edges_up(&of->between) : edges_down(&of->between);
        added->comm = of->levels.between;
        added->context = of;
    }
}

static void add_within(step_list *to, const char *name, size_t lag, two_levels *of) {
    if (collwise_node_size(of->levels.nodes, of->levels.own_node) > 1) {
        collwise_step *added = add_step(to, name, lag);
        added->add = name[1] == 'b' ? add_sb : add_sr;
        added->hops = name[1] == 'b' ? edges_up(&of->within) : edges_down(&of->within);
        added->comm = of->levels.node;
        added->context = of;
    }
}

void collwise_task_bcast(collwise_between between, char *data, size_t bytes, int root, MPI_Comm comm,
                         collwise_parameters with) {
    two_levels of = two_levels_of(between, data, NULL, root, comm, with);
    step_list steps = {.count = 0};
    add_between(&steps, "ib", 0, &of);
    add_within(&steps, "sb", 1, &of);
    collwise_run_steps(steps.list, steps.count, 1, collwise_byte_segments(collwise_whole(bytes), with.segment_bytes),
                       comm);
}

void collwise_task_allreduce(collwise_between between, char *data, size_t elements, const collwise_operation *op,
                             MPI_Comm comm, collwise_parameters with) {
    two_levels of = two_levels_of(between, data, op, 0, comm, with);
    if (!op->commutative && !of.levels.nodes->in_order) {
        collwise_reduce_then_bcast(data, elements, op, collwise_reduce_binomial, collwise_bcast_binomial, comm);
        return;
    }
    step_list steps = {.count = 0};
    add_between(&steps, "ib", 2, &of);
    add_between(&steps, "ir", 1, &of);
    add_within(&steps, "sb", 3, &of);
    add_within(&steps, "sr", 0, &of);
    collwise_run_steps(steps.list, steps.count, 3,
                       collwise_element_segments(collwise_whole(elements), op, with.segment_bytes), comm);
}
