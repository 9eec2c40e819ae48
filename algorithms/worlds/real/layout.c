/* Data between the layout of its datatype and packed form, by MPI_Pack. */
#include "internal.h"

#include <limits.h>

/* Elements whose type has absolute addresses. MPICH's MPI_Pack refuses MPI_BOTTOM: here they count from the first byte.
 */
static void move_absolute(collwise_direction way, char *packed, size_t count, MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low, high, back;
    MPI_Datatype moved;
    collwise_true_bounds(type, &low, &high, comm);
    if (low < high) {
        back = -low;
        MPI_Type_create_hindexed_block(1, 1, &back, type, &moved);
        MPI_Type_commit(&moved);
        collwise_move(way, packed, (char *)low, count, moved, comm);
        MPI_Type_free(&moved);
    }
}

/* A type of so many packed bytes, whose number need not be an int. */
static MPI_Datatype packed_type(size_t bytes) {
    int pieces = (int)(bytes / COLLWISE_PIECE_BYTES), rest = (int)(bytes % COLLWISE_PIECE_BYTES);
    MPI_Aint end = (MPI_Aint)pieces * (MPI_Aint)COLLWISE_PIECE_BYTES;
    MPI_Datatype piece, made;
    MPI_Type_contiguous((int)COLLWISE_PIECE_BYTES, MPI_PACKED, &piece);
    MPI_Type_create_struct(2, (const int[]){pieces, rest}, (const MPI_Aint[]){0, end},
                           (const MPI_Datatype[]){piece, MPI_PACKED}, &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&piece);
    return made;
}

/* An element too large for MPI_Pack is a message to the process itself, since packed data matches any type. */
static void move_large(collwise_direction way, char *packed, size_t bytes, char *element, MPI_Datatype type,
                       MPI_Comm comm) {
    MPI_Comm private = collwise_private(comm);
    int self = collwise_rank_in(private);
    MPI_Datatype packed_bytes = packed_type(bytes);
    int packs = way == COLLWISE_PACK;
    MPI_Sendrecv(packs ? element : packed, 1, packs ? type : packed_bytes, self, COLLWISE_TAG, packs ? packed : element,
                 1, packs ? packed_bytes : type, self, COLLWISE_TAG, private, MPI_STATUS_IGNORE);
    MPI_Type_free(&packed_bytes);
}

/* MPI_Pack counts bytes in an int: go by groups of elements that stay below that. */
void collwise_move(collwise_direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (buffer == MPI_BOTTOM) {
        move_absolute(way, packed, count, type, comm);
        return;
    }
    size_t size = collwise_element_bytes(type);
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    size_t at_once = size == 0 ? COLLWISE_PIECE_BYTES : 1 + (COLLWISE_PIECE_BYTES - 1) / size;
    for (size_t first = 0; first < count; first += at_once) {
        size_t elements = collwise_min(count - first, at_once);
        char *piece = packed + first * size, *place = buffer + (MPI_Aint)first * extent;
        int position = 0, bytes = (int)(elements * size);
        if (size > INT_MAX) {
            move_large(way, piece, size, place, type, comm);
        } else if (way == COLLWISE_PACK) {
            MPI_Pack(place, (int)elements, type, piece, bytes, &position, comm);
        } else {
            MPI_Unpack(piece, bytes, &position, place, (int)elements, type, comm);
        }
    }
}

void collwise_true_bounds(MPI_Datatype type, MPI_Aint *low, MPI_Aint *high, MPI_Comm comm) {
    MPI_Aint extent;
    (void)comm;
    MPI_Type_get_true_extent(type, low, &extent);
    *high = *low + extent;
}
