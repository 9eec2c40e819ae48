/* A reduce-scatter by recursive vector halving and distance doubling, then an allgather by the same steps backwards.
 * For P a power of two:
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta + (P - 1) / P m gamma */
#include "internal.h"

static void allgather_parts(char *data, size_t elements, size_t element_bytes, const collwise_core *core) {
    for (int step = core->steps - 1; step >= 0; step--) {
        int other = core->index ^ 1 << step, partner = collwise_core_rank(core, other);
        collwise_part mine = collwise_part_of(elements, core->index, step + 1);
        collwise_part theirs = collwise_part_of(elements, other, step + 1);
        collwise_sendrecv(data + mine.first * element_bytes, mine.count * element_bytes, partner,
                          data + theirs.first * element_bytes, theirs.count * element_bytes, partner, core->comm);
    }
}

void collwise_allreduce_rabenseifner(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                     collwise_parameters with) {
    (void)with;
    collwise_core core = collwise_core_of(0, comm);
    collwise_core_reduce_scatter(data, elements, op, &core);
    if (core.index >= 0) {
        allgather_parts(data, elements, op->element_bytes, &core);
    }
    collwise_core_hand_out(data, elements * op->element_bytes, &core);
}
