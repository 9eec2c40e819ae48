/* Reductions of data that has values, by MPI_Reduce_local on packed elements. */
#include "internal.h"

#include <stdlib.h>

/* Elements with holes are combined in their own layout, this many at a time. */
enum { ELEMENTS_AT_ONCE = 1024 };

static void compute_in_layout(const collwise_operation *op, const char *left, char *right, size_t elements) {
    collwise_segment group = collwise_segments_of(collwise_whole(elements), ELEMENTS_AT_ONCE);
    char *left_layout, *right_layout;
    char *left_memory = collwise_make_layout(op, group.count, &left_layout);
    char *right_memory = collwise_make_layout(op, group.count, &right_layout);
    for (; group.count > 0; collwise_next_segment(&group)) {
        size_t place = group.first * op->element_bytes;
        collwise_unpack(left + place, left_layout, group.count, op->type, op->comm);
        collwise_unpack(right + place, right_layout, group.count, op->type, op->comm);
        MPI_Reduce_local(left_layout, right_layout, (int)group.count, op->type, op->op);
        collwise_pack(right + place, right_layout, group.count, op->type, op->comm);
    }
    free(left_memory);
    free(right_memory);
}

void collwise_compute(const collwise_operation *op, const char *left, char *right, size_t elements) {
    if (!op->contiguous) {
        compute_in_layout(op, left, right, elements);
        return;
    }
    if (elements <= COLLWISE_PIECE_BYTES) {
        MPI_Reduce_local(left, right, (int)elements, op->type, op->op);
        return;
    }
    /* Counts are ints. */
    collwise_segment group = collwise_segments_of(collwise_whole(elements), COLLWISE_PIECE_BYTES);
    for (; group.count > 0; collwise_next_segment(&group)) {
        size_t place = group.first * op->element_bytes;
        MPI_Reduce_local(left + place, right + place, (int)group.count, op->type, op->op);
    }
}
