/* Recursive vector halving between active processes (see fold.c), nearest first, as Rabenseifner's algorithms have it:
 *
 *     part = all elements
 *     for step = 0 to steps - 1:
 *         partner = new rank xor 2^step
 *         part = the lower half of part if bit `step` of the new rank is 0, else the upper half
 *         exchange contributions with the partner, and combine those to `part`
 *
 * Partners of step k hold the sums of two neighbouring runs of 2^k processes, so that rank order is kept. */
#include "internal.h"

collwise_part collwise_halving_part(size_t elements, int new_rank, int steps) {
    collwise_part part = collwise_whole(elements);
    for (int step = 0; step < steps; step++) {
        size_t lower = part.count - part.count / 2;
        if ((new_rank >> step) % 2 == 0) {
            part.count = lower;
        } else {
            part.first += lower;
            part.count -= lower;
        }
    }
    return part;
}

void collwise_exchange_and_combine(char *data, collwise_part given, collwise_part own, char *received,
                                   const collwise_operation *op, int partner, MPI_Comm comm) {
    size_t unit = op->element_bytes;
    collwise_sendrecv(data + given.first * unit, given.count * unit, partner, received, own.count * unit, partner,
                      comm);
    collwise_combine_received(op, data + own.first * unit, received, own.count, partner < collwise_rank_in(comm));
}

/* The two processes of a pair reduce one half each; then the active one gets the other's. */
static void reduce_pair(char *data, size_t elements, char *received, const collwise_operation *op,
                        const collwise_fold *fold) {
    size_t unit = op->element_bytes;
    int is_active = fold->new_rank >= 0;
    collwise_part lower = collwise_equal_part(elements, 2, 0), upper = collwise_equal_part(elements, 2, 1);
    if (is_active) {
        collwise_exchange_and_combine(data, upper, lower, received, op, fold->partner, fold->comm);
        collwise_receive(data + upper.first * unit, upper.count * unit, fold->partner, fold->comm);
    } else {
        collwise_exchange_and_combine(data, lower, upper, received, op, fold->partner, fold->comm);
        collwise_send(data + upper.first * unit, upper.count * unit, fold->partner, fold->comm);
    }
}

void collwise_halving_reduce_scatter(char *data, size_t elements, const collwise_operation *op,
                                     const collwise_fold *fold) {
    char *received = collwise_scratch((elements - elements / 2) * op->element_bytes, fold->comm);
    if (fold->partner >= 0) {
        reduce_pair(data, elements, received, op, fold);
    }
    for (int step = 0; fold->new_rank >= 0 && step < fold->steps; step++) {
        int other = fold->new_rank ^ 1 << step;
        collwise_exchange_and_combine(data, collwise_halving_part(elements, other, step + 1),
                                      collwise_halving_part(elements, fold->new_rank, step + 1), received, op,
                                      collwise_fold_rank(fold, other), fold->comm);
    }
    collwise_scratch_free(received);
}
