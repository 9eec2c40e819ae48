/* The local part of a reduction, on packed elements. In simulation, where computation takes no time by itself, each
 * byte of the result is charged the time of the host's property collwise/reduce-seconds-per-byte. */
#include "internal.h"

static void charge(const collwise_operation *op, size_t elements) {
    collwise_spend(op->seconds_per_byte * (double)(elements * op->element_bytes));
}

collwise_operation collwise_operation_of(MPI_Op op, MPI_Datatype type, MPI_Comm comm) {
    collwise_operation operation = {.op = op, .type = type, .comm = comm};
    MPI_Op_commutative(op, &operation.commutative);
    operation.element_bytes = collwise_element_bytes(type);
    operation.contiguous = collwise_is_contiguous(type);
    operation.seconds_per_byte = collwise_host_property("collwise/reduce-seconds-per-byte");
    return operation;
}

void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements) {
    if (elements > 0) {
        collwise_compute(op, left, right, elements);
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
