/* Rabenseifner's allreduce: a reduce-scatter by recursive vector halving and distance doubling (recursive_halving.c),
 * then an allgather, which takes the same steps in reverse order:
 *
 *     for step = steps - 1 to 0:
 *         exchange the parts that are here for those of the partner, new rank xor 2^step
 *
 * For P a power of two:
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta + (P - 1) / P m gamma */
#include "internal.h"

static void allgather_parts(char *data, size_t elements, size_t element_bytes, const collwise_fold *fold) {
    for (int step = fold->steps - 1; step >= 0; step--) {
        int other = fold->new_rank ^ 1 << step, partner = collwise_fold_rank(fold, other);
        collwise_part own = collwise_halving_part(elements, fold->new_rank, step + 1);
        collwise_part received = collwise_halving_part(elements, other, step + 1);
        collwise_sendrecv(data + own.first * element_bytes, own.count * element_bytes, partner,
                          data + received.first * element_bytes, received.count * element_bytes, partner, fold->comm);
    }
}

void collwise_allreduce_rabenseifner(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                     collwise_parameters with) {
    (void)with;
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_INTO_EVEN, 0, comm);
    collwise_halving_reduce_scatter(data, elements, op, &fold);
    if (fold.new_rank >= 0) {
        allgather_parts(data, elements, op->element_bytes, &fold);
    }
    collwise_fold_send_back(data, elements * op->element_bytes, &fold);
}
