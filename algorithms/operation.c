/* The local part of a reduction: MPI_Reduce_local on packed elements. In simulation, where computation takes no time by
 * itself, each byte of the result is charged the time of the host's property collwise/reduce-seconds-per-byte. */
#include "internal.h"

#include <stdint.h>
#include <stdlib.h>

static void charge(const collwise_operation *op, size_t elements) {
    collwise_spend(op->seconds_per_byte * (double)(elements * op->element_bytes));
}

/* Elements with holes are combined in their own layout, this many at a time. */
enum { ELEMENTS_AT_ONCE = 1024 };

collwise_operation collwise_operation_of(MPI_Op op, MPI_Datatype type, MPI_Comm comm) {
    collwise_operation operation = {.op = op, .type = type, .comm = comm};
    MPI_Op_commutative(op, &operation.commutative);
    operation.element_bytes = collwise_element_bytes(type);
    operation.contiguous = collwise_is_contiguous(type);
    operation.seconds_per_byte = collwise_host_property("collwise/reduce-seconds-per-byte");
    return operation;
}

char *collwise_make_layout(const collwise_operation *op, size_t elements, char **first) {
    MPI_Aint low, extent, true_low, true_high;
    MPI_Type_get_extent(op->type, &low, &extent);
    collwise_true_bounds(op->type, &true_low, &true_high, op->comm);
    MPI_Aint span = (MPI_Aint)(elements - 1) * (extent < 0 ? -extent : extent);
    size_t bytes = (size_t)(span + true_high - true_low) + 1;
    char *memory = calloc(bytes, 1);
    if (memory == NULL) {
        memory = collwise_allocate(bytes, op->comm);
    }
    /* Where types have absolute addresses, this is far outside of the memory, and of any other. */
    *first = (char *)((uintptr_t)memory - (uintptr_t)true_low + (uintptr_t)(extent < 0 ? span : 0));
    return memory;
}

#ifdef COLLWISE_FOLD_PAYLOADS

static void compute(const collwise_operation *op, const char *left, char *right, size_t elements) {
    (void)op;
    (void)left;
    (void)right;
    (void)elements;
}

#else

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

static void compute(const collwise_operation *op, const char *left, char *right, size_t elements) {
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

#endif

void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements) {
    if (elements > 0) {
        compute(op, left, right, elements);
        charge(op, elements);
    }
}

void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements) {
    if (op->commutative) {
        collwise_combine(op, right, left, elements);
    } else {
        collwise_combine(op, left, right, elements);
        collwise_copy(left, right, elements * op->element_bytes);
    }
}

void collwise_combine_received(const collwise_operation *op, char *data, char *received, size_t elements,
                               int sender_is_lower) {
    if (sender_is_lower) {
        collwise_combine(op, received, data, elements);
    } else {
        collwise_combine_left(op, data, received, elements);
    }
}
