/* A reduce-scatter by recursive vector halving and distance doubling, then a binomial gather. For P a power of two:
 *     T = 2 log2 P alpha + 2 (P - 1) / P m beta + (P - 1) / P m gamma */
#include "internal.h"

/* The steps of the reduce-scatter backwards: who differs from the root in the step's bit sends what it has. */
static void gather_parts(char *data, size_t elements, size_t element_bytes, const collwise_core *core) {
    for (int step = core->steps - 1; step >= 0; step--) {
        int other = core->index ^ 1 << step, partner = collwise_core_rank(core, other);
        if ((core->index >> step) % 2 != (core->kept_index >> step) % 2) {
            collwise_part mine = collwise_part_of(elements, core->index, step + 1);
            collwise_send(data + mine.first * element_bytes, mine.count * element_bytes, partner, core->comm);
            return;
        }
        collwise_part theirs = collwise_part_of(elements, other, step + 1);
        collwise_receive(data + theirs.first * element_bytes, theirs.count * element_bytes, partner, core->comm);
    }
}

void collwise_reduce_rabenseifner(const char *data, char *result, size_t elements, const collwise_operation *op,
                                  int root, MPI_Comm comm, collwise_parameters with) {
    (void)with;
    collwise_core core = collwise_core_of(root, comm);
    char *sum = core.rank == root ? result : collwise_scratch(elements * op->element_bytes, comm);
    collwise_copy(sum, data, elements * op->element_bytes);
    collwise_core_reduce_scatter(sum, elements, op, &core);
    if (core.index >= 0) {
        gather_parts(sum, elements, op->element_bytes, &core);
    }
    if (core.rank != root) {
        collwise_scratch_free(sum);
    }
}
