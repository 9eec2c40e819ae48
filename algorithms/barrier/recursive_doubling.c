/* Barrier by recursive doubling:
 *
 *     processes beyond the last power of two, 2^steps, signal rank - 2^steps (fold.c)
 *     for step = 0 to steps - 1: signal the process `rank xor 2^step` and wait for its signal
 *     the processes beyond are signalled back
 *
 * For P a power of two, and otherwise:
 *     T = log2 P alpha        T = (floor(log2 P) + 2) alpha */
#include "internal.h"

void collwise_barrier_recursive_doubling(MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_fold fold = collwise_fold_of(COLLWISE_FOLD_LAST_INTO_FIRST, 0, comm);
    if (fold.new_rank < 0) {
        collwise_signal(fold.partner, comm);
        collwise_await(fold.partner, comm);
        return;
    }
    if (fold.partner >= 0) {
        collwise_await(fold.partner, comm);
    }
    for (int step = 0; step < fold.steps; step++) {
        int partner = collwise_fold_rank(&fold, fold.new_rank ^ 1 << step);
        collwise_signal_and_await(partner, partner, comm);
    }
    if (fold.partner >= 0) {
        collwise_signal(fold.partner, comm);
    }
}
