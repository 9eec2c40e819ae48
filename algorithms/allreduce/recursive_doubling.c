/* Allreduce by recursive doubling:
 *
 *     fold the processes into 2^steps active ones (fold.c)
 *     for step = 0 to steps - 1:
 *         exchange the sum so far with the partner, new rank xor 2^step, and combine the two
 *     send the result to the processes that are not active
 *
 * For P a power of two:
 *     T = log2 P (alpha + m beta + m gamma) */
#include "internal.h"

/* The sum so far, and as much memory for a received one. */
typedef struct {
    char *sum, *received;
} buffers;

/* Combines in rank order, so that both partners get the same result; the two buffers may change places. */
static buffers combine(buffers in, size_t elements, const collwise_operation *op, int partner_is_lower) {
    if (partner_is_lower) {
        collwise_combine(op, in.received, in.sum, elements);
        return in;
    }
    collwise_combine(op, in.sum, in.received, elements);
    return (buffers){.sum = in.received, .received = in.sum};
}

/* Processes that are not active contribute through their partners. */
static buffers fold_in(buffers in, size_t elements, const collwise_operation *op, const collwise_fold *fold) {
    size_t bytes = elements * op->element_bytes;
    if (fold->new_rank < 0) {
        collwise_send(in.sum, bytes, fold->partner, fold->comm);
    } else if (fold->partner >= 0) {
        collwise_receive(in.received, bytes, fold->partner, fold->comm);
        return combine(in, elements, op, fold->partner < fold->rank);
    }
    return in;
}

void collwise_allreduce_recursive_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                           collwise_parameters with) {
    (void)with;
    size_t bytes = elements * op->element_bytes;
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_INTO_EVEN, 0, comm);
    char *scratch = collwise_scratch(bytes, comm);
    buffers now = fold_in((buffers){.sum = data, .received = scratch}, elements, op, &fold);
    for (int step = 0; fold.new_rank >= 0 && step < fold.steps; step++) {
        int partner = collwise_fold_rank(&fold, fold.new_rank ^ 1 << step);
        collwise_sendrecv(now.sum, bytes, partner, now.received, bytes, partner, comm);
        now = combine(now, elements, op, partner < fold.rank);
    }
    if (now.sum != data) {
        collwise_copy(data, now.sum, bytes);
    }
    collwise_scratch_free(scratch);
    collwise_fold_send_back(data, bytes, &fold);
}
