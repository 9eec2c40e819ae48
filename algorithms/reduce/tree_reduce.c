/* The segmented reduction that all tree topologies share. A process receives the children's segments one after
 * another, combines each with its own and passes the sum on; the next receive is always under way meanwhile.
 * Children of lower rank are combined on the left, those of higher rank on the right: where subtrees hold consecutive
 * ranks, and children come nearest first, rank order is kept. */
#include "internal.h"

/* What flows in from the children: all their first segments, then all their second ones. */
typedef struct {
    const collwise_tree *tree;
    size_t elements, segment, element_bytes;
    size_t started;
    char *buffers[2]; /* in turns: one is received into while the other is read */
    collwise_requests requests[2];
} inflow;

static void start_next(inflow *in) {
    size_t children = (size_t)in->tree->child_count, first = in->started / children * in->segment;
    if (first < in->elements) {
        collwise_start_receive(&in->requests[in->started % 2], in->buffers[in->started % 2],
                               collwise_least(in->segment, in->elements - first) * in->element_bytes,
                               collwise_tree_source(in->tree, (int)(in->started % children)));
    }
    in->started++;
}

static inflow inflow_make(const collwise_tree *tree, size_t elements, size_t segment, const collwise_operation *op,
                          MPI_Comm comm) {
    inflow in = {.tree = tree, .elements = elements, .segment = segment, .element_bytes = op->element_bytes};
    for (int i = 0; i < 2; i++) {
        in.buffers[i] = collwise_scratch(segment * op->element_bytes, comm);
        in.requests[i] = collwise_requests_make(1, comm);
    }
    start_next(&in);
    return in;
}

/* The next segment, which stays until the call after this. */
static char *take(inflow *in) {
    size_t turn = (in->started - 1) % 2;
    start_next(in);
    collwise_wait(&in->requests[turn]);
    return in->buffers[turn];
}

static void inflow_free(inflow *in) {
    for (int i = 0; i < 2; i++) {
        collwise_scratch_free(in->buffers[i]);
        collwise_requests_free(&in->requests[i]);
    }
}

static void send_own(const char *data, size_t elements, size_t segment, size_t element_bytes, int parent,
                     MPI_Comm comm) {
    for (size_t first = 0; first < elements; first += segment) {
        collwise_send(data + first * element_bytes, collwise_least(segment, elements - first) * element_bytes, parent,
                      comm);
    }
}

/* `sum` has room for everything at the tree's root, else for one segment. */
static void combine_and_send(const char *data, char *sum, size_t elements, size_t segment, const collwise_operation *op,
                             const collwise_tree *tree, int rank, MPI_Comm comm) {
    inflow in = inflow_make(tree, elements, segment, op, comm);
    for (size_t first = 0; first < elements; first += segment) {
        size_t count = collwise_least(segment, elements - first);
        char *part = tree->parent < 0 ? sum + first * op->element_bytes : sum;
        collwise_copy(part, data + first * op->element_bytes, count * op->element_bytes);
        for (int child = 0; child < tree->child_count; child++) {
            char *arrived = take(&in);
            if (collwise_tree_source(tree, child) < rank) {
                collwise_combine(op, arrived, part, count);
            } else {
                collwise_combine_left(op, part, arrived, count);
            }
        }
        if (tree->parent >= 0) {
            collwise_send(part, count * op->element_bytes, tree->parent, comm);
        }
    }
    inflow_free(&in);
}

void collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                          const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    size_t segment = collwise_least(collwise_segment_elements(op, elements, segment_bytes), elements);
    size_t bytes = elements * op->element_bytes;
    int is_head = tree->parent < 0, passes_on = is_head && rank != root;
    if (tree->child_count == 0) {
        send_own(data, elements, segment, op->element_bytes, tree->parent, comm);
    } else if (is_head && !passes_on) {
        combine_and_send(data, result, elements, segment, op, tree, rank, comm);
    } else {
        char *sum = collwise_scratch(is_head ? bytes : segment * op->element_bytes, comm);
        combine_and_send(data, sum, elements, segment, op, tree, rank, comm);
        if (passes_on) {
            collwise_send(sum, bytes, root, comm);
        }
        collwise_scratch_free(sum);
    }
    if (rank == root && !is_head) {
        collwise_receive(result, bytes, tree->root, comm);
    }
}
