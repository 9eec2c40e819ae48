/* The reduction goes along all processes in rank order, segment by segment: a process puts what comes from below on the
 * left of its own contribution and passes that on, while it receives the next segment. */
#include "internal.h"

void collwise_pipelined_scan(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             int exclusive, MPI_Comm comm) {
    collwise_tree chain = collwise_tree_of(COLLWISE_CHAIN, 0, comm, 0);
    size_t at_once = collwise_segment_elements(op, elements, segment_bytes), bytes = elements * op->element_bytes;
    char *scratch = collwise_scratch(bytes, comm);
    char *before = exclusive ? data : scratch, *through = exclusive ? scratch : data;
    if (exclusive) {
        collwise_copy(through, data, bytes);
    }
    collwise_requests sends = collwise_requests_make(1, comm);
    for (size_t first = 0; first < elements; first += at_once) {
        size_t count = collwise_least(elements - first, at_once), place = first * op->element_bytes;
        if (chain.parent >= 0) {
            collwise_receive(before + place, count * op->element_bytes, chain.parent, comm);
        }
        if (chain.parent >= 0 && (chain.child_count > 0 || !exclusive)) {
            collwise_combine(op, before + place, through + place, count);
        }
        collwise_wait(&sends);
        if (chain.child_count > 0) {
            collwise_start_send(&sends, through + place, count * op->element_bytes, collwise_tree_child(&chain, 0));
        }
    }
    collwise_wait(&sends);
    collwise_requests_free(&sends);
    collwise_scratch_free(scratch);
}
