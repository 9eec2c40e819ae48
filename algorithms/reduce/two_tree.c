/* Each half of the elements goes up one of two binary trees, segment by segment; everybody is a leaf in one of them.
 * It is the broadcast by two trees backwards: in each step a process receives a segment once and sends one once at
 * most: T = (2 floor(log2(P - 1)) + n_s) (alpha + m_s beta + m_s gamma)
 * As there, sends are synchronous where there is a next segment. */
#include "internal.h"

typedef struct {
    char *sum;
    size_t elements, segment, element_bytes;
    size_t last_first_step; /* of the broadcast, in either tree */
    collwise_two_tree at;
} half;

/* What an edge carries in step `step`. Those that the broadcast uses first are used last here. */
static collwise_part due(const half *part, int broadcast_first_step, size_t step) {
    size_t first_step = part->last_first_step - (size_t)broadcast_first_step;
    if (step < first_step || (step - first_step) % 2 != 0) {
        return (collwise_part){0};
    }
    size_t first = collwise_least((step - first_step) / 2 * part->segment, part->elements);
    return (collwise_part){first, collwise_least(part->segment, part->elements - first)};
}

/* Returns which elements arrive. */
static collwise_part start(const half *part, size_t step, char *arrived, collwise_requests *requests) {
    const collwise_two_tree *at = &part->at;
    size_t unit = part->element_bytes;
    collwise_part arrives = {0};
    for (int child = 0; child < at->child_count; child++) {
        collwise_part next = due(part, at->child_first_steps[child], step);
        if (next.count > 0) {
            collwise_start_receive(requests, arrived, next.count * unit, at->children[child]);
            arrives = next;
        }
    }
    if (at->parent >= 0) {
        collwise_part leaves = due(part, at->first_step, step);
        if (leaves.count > 0) {
            collwise_start_function *start_send =
                part->elements > part->segment ? collwise_start_synchronous_send : collwise_start_send;
            start_send(requests, part->sum + leaves.first * unit, leaves.count * unit, at->parent);
        }
    }
    return arrives;
}

static void step_by_step(const half *halves, size_t steps, const collwise_operation *op, MPI_Comm comm) {
    char *arrived = collwise_scratch(halves[0].segment * op->element_bytes, comm);
    collwise_requests requests = collwise_requests_make(2, comm);
    for (size_t step = 0; step < steps; step++) {
        collwise_part first = start(&halves[0], step, arrived, &requests);
        collwise_part second = start(&halves[1], step, arrived, &requests);
        collwise_wait(&requests);
        collwise_combine(op, arrived, halves[0].sum + first.first * op->element_bytes, first.count);
        collwise_combine(op, arrived, halves[1].sum + second.first * op->element_bytes, second.count);
    }
    collwise_requests_free(&requests);
    collwise_scratch_free(arrived);
}

void collwise_reduce_two_tree(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                              MPI_Comm comm, collwise_parameters with) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    char *sum = rank == root ? result : collwise_scratch(elements * op->element_bytes, comm);
    collwise_copy(sum, data, elements * op->element_bytes);
    size_t first_elements = elements - elements / 2;
    size_t segment = collwise_least(collwise_segment_elements(op, first_elements, with.segment_bytes), first_elements);
    size_t segments = (first_elements - 1) / segment + 1, last_first_step = 2 * (size_t)collwise_log2(procs - 1) + 1;
    half halves[2];
    for (int tree = 0; tree < 2; tree++) {
        halves[tree] = (half){.sum = sum + (tree == 0 ? 0 : first_elements * op->element_bytes),
                              .elements = tree == 0 ? first_elements : elements - first_elements,
                              .segment = segment,
                              .element_bytes = op->element_bytes,
                              .last_first_step = last_first_step,
                              .at = collwise_two_tree_at(tree, procs, root, rank)};
    }
    step_by_step(halves, last_first_step + 2 * segments - 1, op, comm);
    if (rank != root) {
        collwise_scratch_free(sum);
    }
}
