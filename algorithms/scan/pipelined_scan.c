/* Scan along a pipeline of all processes in rank order, exclusive or not:
 *
 *     for each segment:
 *         wait for the sum of all ranks before this one from rank - 1, and post the receive of the next one
 *         put it on the left of the own contribution
 *         start to send that to rank + 1, when the send of the segment before has ended */
#include "internal.h"

void collwise_pipelined_scan(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             int exclusive, MPI_Comm comm) {
    int rank = collwise_rank_in(comm), is_first = rank == 0, is_last = rank == collwise_size_of(comm) - 1;
    size_t unit = op->element_bytes, bytes = elements * unit;
    char *scratch = collwise_scratch(bytes, comm);
    char *before = exclusive ? data : scratch, *through = exclusive ? scratch : data;
    if (exclusive) {
        collwise_copy(through, data, bytes);
    }
    collwise_requests sends = collwise_requests_make(1, comm);
    collwise_segment segment = collwise_element_segments(collwise_whole(elements), op, segment_bytes);
    collwise_incoming incoming = collwise_incoming_make(before, unit, segment, rank - 1, comm);
    for (; segment.count > 0; collwise_next_segment(&segment)) {
        size_t place = segment.first * unit;
        collwise_incoming_wait(&incoming);
        if (!is_first && !(is_last && exclusive)) {
            collwise_combine(op, before + place, through + place, segment.count);
        }
        collwise_wait(&sends);
        if (!is_last) {
            collwise_start_send(&sends, through + place, segment.count * unit, rank + 1);
        }
    }
    collwise_wait(&sends);
    collwise_requests_free(&sends);
    collwise_incoming_free(&incoming);
    collwise_scratch_free(scratch);
}
