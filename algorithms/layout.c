/* Data between the layout of its datatype and packed form: the bytes of the type signature, in its order. */
#include "internal.h"

#include <stdint.h>
#include <stdlib.h>

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

void collwise_pack(char *packed, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (collwise_is_contiguous(type)) {
        collwise_copy(packed, buffer, count * collwise_element_bytes(type));
    } else {
        collwise_move(COLLWISE_PACK, packed, (char *)buffer, count, type, comm);
    }
}

void collwise_unpack(const char *packed, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (collwise_is_contiguous(type)) {
        collwise_copy(buffer, packed, count * collwise_element_bytes(type));
    } else {
        collwise_move(COLLWISE_UNPACK, (char *)packed, buffer, count, type, comm);
    }
}
