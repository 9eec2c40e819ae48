/* Scan by recursive doubling. Groups of 1, 2, 4, ... consecutive ranks join in pairs:
 *
 *     partners, in the same place of the two groups, exchange their groups' totals
 *     both combine the two totals to that of the joined group
 *     the upper one also puts the received total on the left of its result
 *
 * A process without a partner may miss a part of its group's total. That is only so in the last group, where no process
 * of a higher rank needs the total:
 *     T = ceil(log2 P) (alpha + m beta + 2 m gamma) */
#include "internal.h"

void collwise_doubling_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm), has_result = !exclusive;
    size_t bytes = elements * op->element_bytes;
    char *total = collwise_scratch(bytes, comm), *received = collwise_scratch(bytes, comm);
    collwise_copy(total, data, bytes);
    for (int distance = 1; distance < procs; distance *= 2) {
        int partner = rank ^ distance;
        if (partner >= procs) {
            continue;
        }
        collwise_sendrecv(total, bytes, partner, received, bytes, partner, comm);
        if (partner > rank) {
            collwise_combine_left(op, total, received, elements);
            continue;
        }
        collwise_combine(op, received, total, elements);
        if (has_result) {
            collwise_combine(op, received, data, elements);
        } else {
            collwise_copy(data, received, bytes);
        }
        has_result = 1;
    }
    collwise_scratch_free(total);
    collwise_scratch_free(received);
}

void collwise_scan_recursive_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                      collwise_parameters with) {
    (void)with;
    collwise_doubling_scan(data, elements, op, 0, comm);
}
