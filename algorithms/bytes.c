/* User buffers as bytes. Processes may describe the same data by different counts and types, so algorithms split and
 * forward the bytes of the type signature, in its order; MPI_Pack writes them so where data does not lie contiguous. */
#include "internal.h"

/* Whether elements of `type` lie one after another in signature order. Named types without holes do, and
 * MPI_Type_contiguous and MPI_Type_dup of such; equal size and extent alone would also hold for a struct whose
 * members are listed in another order than they lie. */
int collwise_is_contiguous(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) {
        MPI_Aint low, extent;
        int size;
        MPI_Type_get_extent(type, &low, &extent);
        MPI_Type_size(type, &size);
        return low == 0 && extent == size;
    }
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) {
        return 0;
    }
    int count = 1;
    MPI_Aint unused;
    MPI_Datatype inner;
    MPI_Type_get_contents(type, integers, addresses, 1, &count, &unused, &inner);
    int contiguous = collwise_is_contiguous(inner);
    MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) {
        MPI_Type_free(&inner);
    }
    return contiguous;
}

#ifdef SMPI_SHARED_MALLOC
/* SimGrid (3.32 to 4.1) looks for the second element of an indexed or struct type right behind the last block of the
 * first instead of an extent further on; single elements are right. */
static size_t elements_at_once(MPI_Datatype type) {
    (void)type;
    return 1;
}
#else
/* MPI_Pack counts bytes in an int: go by groups of elements that stay below that. */
static size_t elements_at_once(MPI_Datatype type) {
    int size;
    MPI_Type_size(type, &size);
    return size == 0 ? COLLWISE_PIECE_BYTES : 1 + (COLLWISE_PIECE_BYTES - 1) / (size_t)size;
}
#endif

static char *element(const void *buffer, size_t index, MPI_Datatype type) {
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    return (char *)buffer + (MPI_Aint)index * extent;
}

void collwise_pack(char *packed, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    int size;
    MPI_Type_size(type, &size);
    size_t at_once = elements_at_once(type);
    for (size_t first = 0; first < count; first += at_once) {
        size_t elements = collwise_least(count - first, at_once);
        int position = 0;
        MPI_Pack(element(buffer, first, type), (int)elements, type, packed + first * (size_t)size,
                 (int)(elements * (size_t)size), &position, comm);
    }
}

void collwise_unpack(const char *packed, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    int size;
    MPI_Type_size(type, &size);
    size_t at_once = elements_at_once(type);
    for (size_t first = 0; first < count; first += at_once) {
        size_t elements = collwise_least(count - first, at_once);
        int position = 0;
        MPI_Unpack(packed + first * (size_t)size, (int)(elements * (size_t)size), &position,
                   element(buffer, first, type), (int)elements, type, comm);
    }
}

collwise_bytes collwise_bytes_of(const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    int size;
    MPI_Type_size(type, &size);
    collwise_bytes view = {.data = (char *)buffer, .bytes = count * (size_t)size};
    if (view.bytes > 0 && !collwise_is_contiguous(type)) {
        view.data = view.copy = collwise_scratch(view.bytes, comm);
    }
    return view;
}

void collwise_bytes_pack(collwise_bytes *view, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (view->copy != NULL) {
        collwise_pack(view->copy, buffer, count, type, comm);
    }
}

void collwise_bytes_unpack(const collwise_bytes *view, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (view->copy != NULL) {
        collwise_unpack(view->copy, buffer, count, type, comm);
    }
}

void collwise_bytes_release(collwise_bytes *view) {
    collwise_scratch_free(view->copy);
    view->copy = NULL;
}
