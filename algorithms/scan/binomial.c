/* Scan up and down a binomial tree. Ranks are counted from 1 here:
 *
 *     up:    for d = 1, 2, 4, ...: each multiple of 2 d receives the sum of the d ranks up to the rank d below
 *     down:  for d = ..., 4, 2, 1: each multiple of 2 d sends the sum of all ranks up to itself to the rank d above
 *
 *     T = 2 floor(log2 P) (alpha + m beta + m gamma)        at most */
#include "internal.h"

/* The sum of the ranks so far, `through` this one, which is what is sent, and for an exclusive scan that `before`
 * it. */
typedef struct {
    char *before, *through, *received;
    int has_before;
} sums;

static void receive_from_below(sums *sums, size_t elements, const collwise_operation *op, int source, MPI_Comm comm) {
    collwise_receive(sums->received, elements * op->element_bytes, source, comm);
    collwise_combine(op, sums->received, sums->through, elements);
    if (sums->before != NULL && sums->has_before) {
        collwise_combine(op, sums->received, sums->before, elements);
    } else if (sums->before != NULL) {
        collwise_copy(sums->before, sums->received, elements * op->element_bytes);
    }
    sums->has_before = 1;
}

void collwise_binomial_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm);
    size_t bytes = elements * op->element_bytes;
    char *scratch = exclusive ? collwise_scratch(bytes, comm) : NULL;
    sums sums = {.before = exclusive ? data : NULL,
                 .through = exclusive ? scratch : data,
                 .received = collwise_scratch(bytes, comm)};
    if (exclusive) {
        collwise_copy(scratch, data, bytes);
    }
    int own = (rank + 1) & -(rank + 1); /* the largest power of two that divides the rank, counted from 1 */
    for (int distance = 1; distance < own; distance *= 2) {
        receive_from_below(&sums, elements, op, rank - distance, comm);
    }
    if (rank + own < procs) {
        collwise_send(sums.through, bytes, rank + own, comm);
    }
    if (rank - own >= 0) {
        receive_from_below(&sums, elements, op, rank - own, comm);
    }
    for (int distance = own / 2; distance > 0; distance /= 2) {
        if (rank + distance < procs) {
            collwise_send(sums.through, bytes, rank + distance, comm);
        }
    }
    collwise_scratch_free(scratch);
    collwise_scratch_free(sums.received);
}

void collwise_scan_binomial(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                            collwise_parameters with) {
    (void)with;
    collwise_binomial_scan(data, elements, op, 0, comm);
}
