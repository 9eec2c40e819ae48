/* Rabenseifner's reduction: a reduce-scatter by recursive vector halving and distance doubling (recursive_halving.c),
 * then a binomial gather, which takes the same steps in reverse order:
 *
 *     for step = steps - 1 to 0:
 *         partner = new rank xor 2^step
 *         if bit `step` of the new rank is not the root's: send all that is here to the partner, and stop
 *         otherwise: receive the partner's part
 *
 * For P a power of two:
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta + (P - 1) / P m gamma */
#include "internal.h"

static void gather_parts(char *data, size_t elements, size_t element_bytes, const collwise_fold *fold) {
    int root = collwise_fold_new_rank(fold, fold->root);
    for (int step = fold->steps - 1; step >= 0; step--) {
        int other = fold->new_rank ^ 1 << step, partner = collwise_fold_rank(fold, other);
        if ((fold->new_rank >> step) % 2 != (root >> step) % 2) {
            collwise_part own = collwise_halving_part(elements, fold->new_rank, step + 1);
            collwise_send(data + own.first * element_bytes, own.count * element_bytes, partner, fold->comm);
            return;
        }
        collwise_part received = collwise_halving_part(elements, other, step + 1);
        collwise_receive(data + received.first * element_bytes, received.count * element_bytes, partner, fold->comm);
    }
}

void collwise_reduce_rabenseifner(const char *data, char *result, size_t elements, const collwise_operation *op,
                                  int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_INTO_EVEN, root, comm);
    char *sum = fold.rank == root ? result : collwise_scratch(elements * op->element_bytes, comm);
    collwise_copy(sum, data, elements * op->element_bytes);
    collwise_halving_reduce_scatter(sum, elements, op, &fold);
    if (fold.new_rank >= 0) {
        gather_parts(sum, elements, op->element_bytes, &fold);
    }
    if (fold.rank != root) {
        collwise_scratch_free(sum);
    }
}
