/* Datatypes: the size of an element, and if its packed form is its layout. */
#include "internal.h"

size_t collwise_element_bytes(MPI_Datatype type) {
    MPI_Count bytes;
    MPI_Type_size_x(type, &bytes);
    return (size_t)bytes;
}

/* Frees a datatype that MPI_Type_get_contents has given. */
static void release(MPI_Datatype inner) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
    if (COLLWISE_LIBRARY_GIVES_COPIES && combiner != MPI_COMBINER_NAMED) {
        MPI_Type_free(&inner);
    }
}

/* Named types without holes are contiguous, and MPI_Type_contiguous and MPI_Type_dup of such. Size and extent alone
 * would not do: they are equal, too, for a struct whose members are listed in another order than they lie. The lower
 * bound counts because SimGrid describes blocks that follow one another as contiguous wherever they start. */
int collwise_is_contiguous(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (low != 0 || extent != (MPI_Aint)collwise_element_bytes(type)) {
        return 0;
    }
    if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) {
        return combiner == MPI_COMBINER_NAMED;
    }
    int count;
    MPI_Aint unused;
    MPI_Datatype inner;
    MPI_Type_get_contents(type, integers, addresses, 1, &count, &unused, &inner);
    int contiguous = collwise_is_contiguous(inner);
    release(inner);
    return contiguous;
}
