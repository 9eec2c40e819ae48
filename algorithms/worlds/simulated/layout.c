/* Data between the layout of its datatype and packed form where SMPI's MPI_Pack is wrong: SimGrid's is for the second
 * element of indexed and struct types, for duplicates of indexed types and for types nested in others, and its true
 * extent is the extent. Its description of a type's contents is right, so the layout is taken from there. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

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

void collwise_move(collwise_direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    layout element = layout_of(type, comm);
    for (size_t i = 0; i < count; i++, buffer += element.extent) {
        for (const run *next = element.runs; next < element.runs + element.count; packed += next->bytes, next++) {
            char *place = buffer + next->offset;
            collwise_copy(way == COLLWISE_PACK ? packed : place, way == COLLWISE_PACK ? place : packed, next->bytes);
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
