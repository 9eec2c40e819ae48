/* At step k processes whose numbers differ in bit k exchange all they have; both combine it the same way. For P a
 * power of two:
 *     T = log2 P (alpha + m beta + m gamma) */
#include "internal.h"

/* The sum so far, and as much memory for what arrives. */
typedef struct {
    char *sum, *arrived;
} buffers;

/* Lower ranks to the left, at both partners alike. */
static buffers combined(buffers in, size_t elements, const collwise_operation *op, int partner_is_lower) {
    if (partner_is_lower) {
        collwise_combine(op, in.arrived, in.sum, elements);
        return in;
    }
    collwise_combine(op, in.sum, in.arrived, elements);
    return (buffers){.sum = in.arrived, .arrived = in.sum};
}

/* Those outside the core contribute through their partners. */
static buffers take_in(buffers in, size_t elements, const collwise_operation *op, const collwise_core *core) {
    size_t bytes = elements * op->element_bytes;
    if (core->index < 0) {
        collwise_send(in.sum, bytes, core->partner, core->comm);
    } else if (core->partner >= 0) {
        collwise_receive(in.arrived, bytes, core->partner, core->comm);
        return combined(in, elements, op, core->partner < core->rank);
    }
    return in;
}

void collwise_allreduce_recursive_doubling(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                           collwise_parameters with) {
    (void)with;
    size_t bytes = elements * op->element_bytes;
    collwise_core core = collwise_core_of(0, comm);
    char *spare = collwise_scratch(bytes, comm);
    buffers at = take_in((buffers){.sum = data, .arrived = spare}, elements, op, &core);
    for (int step = 0; core.index >= 0 && step < core.steps; step++) {
        int partner = collwise_core_rank(&core, core.index ^ 1 << step);
        collwise_sendrecv(at.sum, bytes, partner, at.arrived, bytes, partner, comm);
        at = combined(at, elements, op, partner < core.rank);
    }
    if (at.sum != data) {
        collwise_copy(data, at.sum, bytes);
    }
    collwise_scratch_free(spare);
    collwise_core_hand_out(data, bytes, &core);
}
