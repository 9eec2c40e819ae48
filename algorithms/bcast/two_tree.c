/* Each half of the message goes down one of two binary trees, segment by segment; everybody is a leaf in one of them.
 * In each step a process receives a segment in the one tree while it sends one in the other:
 *     T = (2 floor(log2(P - 1)) + n_s) (alpha + m_s beta)
 * Where there is a next segment, sends are synchronous, which keeps processes in step: eager messages of later steps
 * would share the links with those that others wait for. */
#include "internal.h"

typedef struct {
    char *data;
    size_t bytes, segments, segment_bytes;
    collwise_two_tree at;
} half;

static half make_half(int tree, char *data, size_t bytes, int root, MPI_Comm comm, size_t segment_bytes) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    return (half){data, bytes, collwise_segment_count(bytes, segment_bytes), segment_bytes,
                  collwise_two_tree_at(tree, procs, root, rank)};
}

/* Whether an edge whose first step is this has a segment to carry in step `step`. */
static int is_due(const half *part, int first_step, size_t step) {
    size_t first = (size_t)first_step;
    return step >= first && (step - first) % 2 == 0 && (step - first) / 2 < part->segments;
}

static void start(half *part, size_t step, collwise_requests *requests) {
    const collwise_two_tree *at = &part->at;
    collwise_start_function *start_send = part->segments > 1 ? collwise_start_synchronous_send : collwise_start_send;
    if (at->parent >= 0 && is_due(part, at->first_step, step)) {
        size_t segment = (step - (size_t)at->first_step) / 2;
        collwise_start_receive(requests, part->data + segment * collwise_segment_bytes(part->segment_bytes),
                               collwise_segment_length(part->bytes, part->segment_bytes, segment), at->parent);
    }
    for (int child = 0; child < at->child_count; child++) {
        if (is_due(part, at->child_first_steps[child], step)) {
            size_t segment = (step - (size_t)at->child_first_steps[child]) / 2;
            start_send(requests, part->data + segment * collwise_segment_bytes(part->segment_bytes),
                       collwise_segment_length(part->bytes, part->segment_bytes, segment), at->children[child]);
        }
    }
}

void collwise_bcast_two_tree(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    size_t first_bytes = bytes - bytes / 2;
    half first = make_half(0, data, first_bytes, root, comm, with.segment_bytes);
    half second = make_half(1, data + first_bytes, bytes - first_bytes, root, comm, with.segment_bytes);
    int procs;
    MPI_Comm_size(comm, &procs);
    size_t steps = 2 * (size_t)collwise_log2(procs - 1) + 2 * first.segments;
    collwise_requests requests = collwise_requests_make(2, comm);
    for (size_t step = 0; step < steps; step++) {
        start(&first, step, &requests);
        start(&second, step, &requests);
        collwise_wait(&requests);
    }
    collwise_requests_free(&requests);
}
