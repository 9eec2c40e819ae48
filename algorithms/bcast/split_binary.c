/* Broadcast of each half of the message down one subtree of a balanced binary tree (its rule is in binary.c), whose
 * left subtree is the odd virtual ranks and whose right subtree is the even ones:
 *
 *     root:    for each segment i: send segment i of the left half to the left child,
 *                                  then segment i of the right half to the right child
 *     others:  for each segment of the subtree's half: receive it from the parent, send it to each child;
 *              the receive of the next one is posted before the sends
 *     then pairs of processes in the same place of the two subtrees exchange their halves
 *
 * Sends are blocking. If P is even, the last process has no counterpart and gets the right half from the root. Formula
 * (9), where n_s / 2 is the number of segments of a half:
 *     T = 2 (floor(log2 P) + n_s / 2 - 1) (alpha + m_s beta) + (alpha + m / 2 beta) */
#include "internal.h"

typedef struct {
    collwise_part left, right;
} halves;

static halves halves_of(size_t bytes) {
    return (halves){.left = collwise_equal_part(bytes, 2, 0), .right = collwise_equal_part(bytes, 2, 1)};
}

static int is_in_left_subtree(const collwise_tree *tree) { return tree->virtual_rank % 2 == 1; }

static void send_from_root(const char *data, halves halves, const collwise_tree *tree, size_t segment_bytes,
                           MPI_Comm comm) {
    collwise_segment left = collwise_byte_segments(halves.left, segment_bytes);
    collwise_segment right = collwise_byte_segments(halves.right, segment_bytes);
    while (left.count > 0) {
        collwise_send(data + left.first, left.count, collwise_tree_child(tree, 0), comm);
        if (right.count > 0 && tree->child_count > 1) {
            collwise_send(data + right.first, right.count, collwise_tree_child(tree, 1), comm);
        }
        collwise_next_segment(&left);
        collwise_next_segment(&right);
    }
}

static void pass_down(char *data, collwise_part half, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm) {
    collwise_segment segment = collwise_byte_segments(half, segment_bytes);
    collwise_incoming incoming = collwise_incoming_make(data, 1, segment, tree->parent, comm);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        collwise_incoming_wait(&incoming);
        for (int child = 0; child < tree->child_count; child++) {
            collwise_send(data + segment.first, segment.count, collwise_tree_child(tree, child), comm);
        }
    }
    collwise_incoming_free(&incoming);
}

void collwise_split_binary_exchange(char *data, size_t bytes, int root, MPI_Comm comm) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    halves halves = halves_of(bytes);
    char *left = data + halves.left.first, *right = data + halves.right.first;
    int partner = collwise_binary_partner(&tree), last = (root + tree.procs - 1) % tree.procs;
    if (partner >= 0 && is_in_left_subtree(&tree)) {
        collwise_sendrecv(left, halves.left.count, partner, right, halves.right.count, partner, comm);
    } else if (partner >= 0) {
        collwise_sendrecv(right, halves.right.count, partner, left, halves.left.count, partner, comm);
    } else if (tree.virtual_rank == tree.procs - 1) {
        collwise_receive(right, halves.right.count, root, comm);
    } else if (tree.procs % 2 == 0) {
        collwise_send(right, halves.right.count, last, comm);
    }
}

void collwise_bcast_split_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_tree tree = collwise_tree_of(COLLWISE_BINARY, root, comm, 0);
    halves halves = halves_of(bytes);
    if (tree.parent < 0) {
        send_from_root(data, halves, &tree, with.segment_bytes, comm);
    } else {
        pass_down(data, is_in_left_subtree(&tree) ? halves.left : halves.right, &tree, with.segment_bytes, comm);
    }
    collwise_split_binary_exchange(data, bytes, root, comm);
}
