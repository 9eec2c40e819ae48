/* Each half of the message goes down one subtree of a balanced binary tree, segment by segment with blocking sends;
 * then pairs of processes, one of each subtree, exchange their halves. Formula (9):
 *     T = 2 (floor(log2 P) + n_s / 2 - 1) (alpha + m_s beta) + (alpha + m / 2 beta) */
#include "internal.h"

/* The left subtree holds the odd virtual ranks and carries the first half of the message. */
static int is_left(int virtual_rank) { return virtual_rank % 2 == 1; }

static size_t left_bytes(size_t bytes) { return bytes - bytes / 2; }

static void forward(const char *half, size_t half_bytes, size_t segment, size_t segment_bytes, int child,
                    MPI_Comm comm) {
    if (segment < collwise_segment_count(half_bytes, segment_bytes)) {
        collwise_send(half + segment * collwise_segment_bytes(segment_bytes),
                      collwise_segment_length(half_bytes, segment_bytes, segment), child, comm);
    }
}

static void root_sends(const char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    size_t left = left_bytes(bytes);
    for (size_t i = 0; i < collwise_segment_count(left, segment_bytes); i++) {
        forward(data, left, i, segment_bytes, collwise_tree_child(tree, 0), comm);
        if (tree->child_count > 1) {
            forward(data + left, bytes - left, i, segment_bytes, collwise_tree_child(tree, 1), comm);
        }
    }
}

static void others_pass_on(char *half, size_t half_bytes, const collwise_tree *tree, size_t segment_bytes,
                           MPI_Comm comm) {
    for (size_t i = 0; i < collwise_segment_count(half_bytes, segment_bytes); i++) {
        collwise_receive(half + i * collwise_segment_bytes(segment_bytes),
                         collwise_segment_length(half_bytes, segment_bytes, i), tree->parent, comm);
        for (int child = 0; child < tree->child_count; child++) {
            forward(half, half_bytes, i, segment_bytes, collwise_tree_child(tree, child), comm);
        }
    }
}

void collwise_split_binary_exchange(char *data, size_t bytes, int root, MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    size_t left = left_bytes(bytes);
    int last = (root + tree.procs - 1) % tree.procs;
    int partner = collwise_binary_partner(&tree);
    if (partner >= 0 && is_left(tree.virtual_rank)) {
        collwise_sendrecv(data, left, partner, data + left, bytes - left, partner, comm);
    } else if (partner >= 0) {
        collwise_sendrecv(data + left, bytes - left, partner, data, left, partner, comm);
    } else if (tree.virtual_rank == tree.procs - 1) {
        collwise_receive(data + left, bytes - left, root, comm);
    } else if (tree.procs % 2 == 0) {
        collwise_send(data + left, bytes - left, last, comm);
    }
}

void collwise_bcast_split_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    size_t left = left_bytes(bytes);
    if (tree.parent < 0) {
        root_sends(data, bytes, &tree, with.segment_bytes, comm);
    } else if (is_left(tree.virtual_rank)) {
        others_pass_on(data, left, &tree, with.segment_bytes, comm);
    } else {
        others_pass_on(data + left, bytes - left, &tree, with.segment_bytes, comm);
    }
    collwise_split_binary_exchange(data, bytes, root, comm);
}
