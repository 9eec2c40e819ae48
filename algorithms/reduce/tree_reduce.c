/* The segmented reduction that all trees share:
 *
 *     for each segment:
 *         for each child: receive its segment and combine it
 *         send the result to the parent
 *
 * The next receive is posted before a segment is combined. Two children may send at once, but a second segment of one
 * child is asked for only when the first one has arrived. What children of lower rank send is combined on the
 * left, what children of higher rank send on the right: rank order is kept if subtrees hold consecutive ranks and the
 * nearest child is received from first. */
#include "internal.h"

static void start_next(collwise_contributions *in) {
    in->current = 1 - in->current;
    if (in->next_segment.count > 0) {
        collwise_start_receive(&in->requests[in->current], in->buffers[in->current],
                               in->next_segment.count * in->element_bytes,
                               collwise_tree_source(in->tree, in->next_child));
    }
    in->next_child++;
    if (in->next_child == in->tree->child_count) {
        in->next_child = 0;
        collwise_next_segment(&in->next_segment);
    }
}

collwise_contributions collwise_contributions_make(const collwise_tree *tree, collwise_segment first,
                                                   const collwise_operation *op, MPI_Comm comm) {
    collwise_contributions in = {.tree = tree, .element_bytes = op->element_bytes, .next_segment = first};
    if (tree->child_count > 0) {
        in.rank = collwise_rank_in(comm);
        for (int i = 0; i < 2; i++) {
            in.buffers[i] = collwise_scratch(first.count * op->element_bytes, comm);
            in.requests[i] = collwise_requests_make(1, comm);
        }
        start_next(&in);
    }
    return in;
}

/* Waits for the oldest receive and returns its buffer, which is valid until the next call. */
static char *wait_for_oldest(collwise_contributions *in) {
    int oldest = in->current, next_is_of_another_child = in->tree->child_count > 1;
    if (next_is_of_another_child) {
        start_next(in);
    }
    collwise_wait(&in->requests[oldest]);
    if (!next_is_of_another_child) {
        start_next(in);
    }
    return in->buffers[oldest];
}

void collwise_contributions_combine(collwise_contributions *in, char *sum, size_t elements,
                                    const collwise_operation *op) {
    for (int child = 0; elements > 0 && child < in->tree->child_count; child++) {
        char *received = wait_for_oldest(in);
        collwise_combine_received(op, sum, received, elements, collwise_tree_source(in->tree, child) < in->rank);
    }
}

void collwise_contributions_free(collwise_contributions *in) {
    for (int i = 0; i < 2; i++) {
        collwise_scratch_free(in->buffers[i]);
        collwise_requests_free(&in->requests[i]);
    }
}

static void send_own_segments(const char *data, collwise_segment segment, size_t element_bytes, int parent,
                              MPI_Comm comm) {
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        collwise_send(data + segment.first * element_bytes, segment.count * element_bytes, parent, comm);
    }
}

/* `sum` has room for all elements at the tree's root, and for one segment elsewhere. */
static void combine_and_send(const char *data, char *sum, collwise_segment segment, const collwise_operation *op,
                             const collwise_tree *tree, MPI_Comm comm) {
    size_t unit = op->element_bytes;
    collwise_contributions in = collwise_contributions_make(tree, segment, op, comm);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        char *part = tree->parent < 0 ? sum + segment.first * unit : sum;
        collwise_copy(part, data + segment.first * unit, segment.count * unit);
        collwise_contributions_combine(&in, part, segment.count, op);
        if (tree->parent >= 0) {
            collwise_send(part, segment.count * unit, tree->parent, comm);
        }
    }
    collwise_contributions_free(&in);
}

void collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                          const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm) {
    int rank = collwise_rank_in(comm), is_tree_root = tree->parent < 0;
    collwise_segment first = collwise_element_segments(collwise_whole(elements), op, segment_bytes);
    size_t bytes = elements * op->element_bytes;
    int is_one_segment = first.count > 0 && first.count == elements;
    int is_pair = is_tree_root && rank == root && tree->child_count == 1;
    if (COLLWISE_TAKES_SHORT_WAYS && is_pair && is_one_segment && op->commutative && data != result) {
        /* The order does not matter, so that the only segment is received where the result is. */
        collwise_receive(result, bytes, collwise_tree_child(tree, 0), comm);
        collwise_combine(op, data, result, elements);
    } else if (tree->child_count == 0) {
        send_own_segments(data, first, op->element_bytes, tree->parent, comm);
    } else if (is_tree_root && rank == root) {
        combine_and_send(data, result, first, op, tree, comm);
    } else {
        char *sum = collwise_scratch(is_tree_root ? bytes : first.count * op->element_bytes, comm);
        combine_and_send(data, sum, first, op, tree, comm);
        if (is_tree_root) {
            collwise_send(sum, bytes, root, comm);
        }
        collwise_scratch_free(sum);
    }
    if (rank == root && !is_tree_root) {
        collwise_receive(result, bytes, tree->root, comm);
    }
}
