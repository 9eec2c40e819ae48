/* Data between the layout of its datatype and packed form: the bytes of the type signature, in its order. */
#include "internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef SMPI_SHARED_MALLOC

/* SimGrid (3.32 to 4.1) hands out the program's own type, and MPI_Type_free would mark that as freed. */
static void release(MPI_Datatype inner) { (void)inner; }

#else

static void release(MPI_Datatype inner) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) {
        MPI_Type_free(&inner);
    }
}

#endif

size_t collwise_element_bytes(MPI_Datatype type) {
    MPI_Count bytes;
    MPI_Type_size_x(type, &bytes);
    return (size_t)bytes;
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

typedef enum { PACK, UNPACK } direction;

#ifdef SMPI_SHARED_MALLOC

/* SimGrid's MPI_Pack is wrong for the second element of indexed and struct types, for duplicates of indexed types and
 * for types nested in others, and its true extent is the extent. Its description of a type's contents is right, so the
 * layout is taken from there. */

/* Bytes that lie together and follow one another in the signature. */
typedef struct {
    MPI_Aint offset;
    size_t bytes;
} run;

/* The runs of one element, in signature order. */
typedef struct {
    run *runs;
    size_t count, room;
    MPI_Aint extent;
    MPI_Comm comm;
} layout;

static void add_run(layout *to, MPI_Aint offset, size_t bytes) {
    run *last = to->count > 0 ? &to->runs[to->count - 1] : NULL;
    if (bytes == 0) {
        return;
    }
    if (last != NULL && last->offset + (MPI_Aint)last->bytes == offset) {
        last->bytes += bytes;
        return;
    }
    if (to->count == to->room) {
        size_t room = 2 * to->room + 8;
        run *longer = collwise_allocate(room * sizeof *longer, to->comm);
        for (size_t i = 0; i < to->count; i++) {
            longer[i] = to->runs[i];
        }
        free(to->runs);
        to->runs = longer;
        to->room = room;
    }
    to->runs[to->count++] = (run){offset, bytes};
}

/* Adds a block of elements, of which the first counts from `start`. */
static void add_block(layout *to, MPI_Aint start, size_t elements, const layout *element) {
    const run *runs = element->runs;
    if (element->count == 1 && (MPI_Aint)runs->bytes == element->extent) {
        add_run(to, start + runs->offset, elements * runs->bytes);
        return;
    }
    for (size_t i = 0; i < elements; i++, start += element->extent) {
        for (size_t j = 0; j < element->count; j++) {
            add_run(to, start + runs[j].offset, runs[j].bytes);
        }
    }
}

/* MPI's description of how a type was made. */
typedef struct {
    int combiner, integer_count, address_count, type_count;
    int *integers;
    MPI_Aint *addresses;
    MPI_Datatype *types;
} contents;

static contents read_contents(MPI_Datatype type, MPI_Comm comm) {
    contents of;
    MPI_Type_get_envelope(type, &of.integer_count, &of.address_count, &of.type_count, &of.combiner);
    of.integers = collwise_allocate((size_t)of.integer_count * sizeof *of.integers, comm);
    of.addresses = collwise_allocate((size_t)of.address_count * sizeof *of.addresses, comm);
    of.types = collwise_allocate((size_t)of.type_count * sizeof *of.types, comm);
    if (of.combiner != MPI_COMBINER_NAMED) {
        MPI_Type_get_contents(type, of.integer_count, of.address_count, of.type_count, of.integers, of.addresses,
                              of.types);
    }
    return of;
}

static void free_contents(contents *of) {
    for (int i = 0; i < of->type_count; i++) {
        release(of->types[i]);
    }
    free(of->integers);
    free(of->addresses);
    free(of->types);
}

/* A type's block `index`: its number of elements, and its start. Structs and resized types come as indexed types with
 * addresses. */
static size_t block_length(const contents *of, int index) {
    switch (of->combiner) {
    case MPI_COMBINER_DUP:
        return 1;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        return (size_t)of->integers[1];
    default:
        return (size_t)of->integers[1 + index];
    }
}

static MPI_Aint block_start(const contents *of, int index, MPI_Aint extent, MPI_Comm comm) {
    switch (of->combiner) {
    case MPI_COMBINER_DUP:
        return 0;
    case MPI_COMBINER_VECTOR:
        return (MPI_Aint)index * of->integers[2] * extent;
    case MPI_COMBINER_HVECTOR:
        return (MPI_Aint)index * of->addresses[0];
    case MPI_COMBINER_INDEXED:
        return of->address_count > 0 ? of->addresses[index] : of->integers[1 + of->integers[0] + index] * extent;
    case MPI_COMBINER_HINDEXED:
        return of->addresses[index];
    default:
        fprintf(stderr, "collwise: this SimGrid has datatypes of another kind (combiner %d) than 3.32 to 4.1\n",
                of->combiner);
        MPI_Abort(comm, 1);
        return 0;
    }
}

static layout layout_of(MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low;
    layout made = {.comm = comm}, element = {.comm = comm};
    MPI_Type_get_extent(type, &low, &made.extent);
    contents of = read_contents(type, comm);
    if (of.combiner == MPI_COMBINER_NAMED || of.combiner == MPI_COMBINER_CONTIGUOUS) {
        add_run(&made, low, collwise_element_bytes(type));
    } else {
        int blocks = of.combiner == MPI_COMBINER_DUP ? 1 : of.integers[0];
        for (int i = 0; i < blocks; i++) {
            if (i < of.type_count) { /* one for each block, or one for all */
                free(element.runs);
                element = layout_of(of.types[i], comm);
            }
            add_block(&made, block_start(&of, i, element.extent, comm), block_length(&of, i), &element);
        }
    }
    free(element.runs);
    free_contents(&of);
    return made;
}

static void move(direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    layout element = layout_of(type, comm);
    for (size_t i = 0; i < count; i++, buffer += element.extent) {
        for (const run *next = element.runs; next < element.runs + element.count; packed += next->bytes, next++) {
            char *place = buffer + next->offset;
            collwise_copy(way == PACK ? packed : place, way == PACK ? place : packed, next->bytes);
        }
    }
    free(element.runs);
}

void collwise_true_bounds(MPI_Datatype type, MPI_Aint *low, MPI_Aint *high, MPI_Comm comm) {
    layout element = layout_of(type, comm);
    *low = *high = element.count > 0 ? element.runs[0].offset : 0;
    for (size_t i = 0; i < element.count; i++) {
        MPI_Aint start = element.runs[i].offset, end = start + (MPI_Aint)element.runs[i].bytes;
        *low = start < *low ? start : *low;
        *high = end > *high ? end : *high;
    }
    free(element.runs);
}

#else

static void move(direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);

/* Elements whose type has absolute addresses. MPICH's MPI_Pack refuses MPI_BOTTOM: here they count from the first byte.
 */
static void move_absolute(direction way, char *packed, size_t count, MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low, high, back;
    MPI_Datatype moved;
    collwise_true_bounds(type, &low, &high, comm);
    if (low < high) {
        back = -low;
        MPI_Type_create_hindexed_block(1, 1, &back, type, &moved);
        MPI_Type_commit(&moved);
        move(way, packed, (char *)low, count, moved, comm);
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
static void move_large(direction way, char *packed, size_t bytes, char *element, MPI_Datatype type, MPI_Comm comm) {
    MPI_Comm private = collwise_private(comm);
    int self = collwise_rank_in(private);
    MPI_Datatype packed_bytes = packed_type(bytes);
    int packs = way == PACK;
    MPI_Sendrecv(packs ? element : packed, 1, packs ? type : packed_bytes, self, COLLWISE_TAG, packs ? packed : element,
                 1, packs ? packed_bytes : type, self, COLLWISE_TAG, private, MPI_STATUS_IGNORE);
    MPI_Type_free(&packed_bytes);
}

/* MPI_Pack counts bytes in an int: go by groups of elements that stay below that. */
static void move(direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
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
        } else if (way == PACK) {
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

#endif

void collwise_pack(char *packed, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (collwise_is_contiguous(type)) {
        collwise_copy(packed, buffer, count * collwise_element_bytes(type));
    } else {
        move(PACK, packed, (char *)buffer, count, type, comm);
    }
}

void collwise_unpack(const char *packed, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (collwise_is_contiguous(type)) {
        collwise_copy(buffer, packed, count * collwise_element_bytes(type));
    } else {
        move(UNPACK, (char *)packed, buffer, count, type, comm);
    }
}
