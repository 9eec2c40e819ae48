/* Data for verify: every datatype with its type map written out by hand, and images of memory before and after. */
#include "verify.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 0xA5, MARGIN_BYTES = 128 };

#define RUNS(...)                                                                                                      \
    (sizeof((verify_run[]){__VA_ARGS__}) / sizeof(verify_run)), (const verify_run[]) { __VA_ARGS__ }

/* Type maps, in signature order. */
static const struct {
    const char *name;
    int ints_per_element;
    ptrdiff_t extent;
    size_t run_count;
    const verify_run *runs;
} maps[] = {
    [VERIFY_INT] = {"int", 1, 4, RUNS({0, 4})},
    [VERIFY_BYTE] = {"byte", 1, 1, RUNS({0, 1})},
    [VERIFY_DOUBLE_INT] = {"double_int", 1, 16, RUNS({0, 8}, {8, 4})},
    [VERIFY_PAIR] = {"pair", 1, 16, RUNS({0, 8}, {8, 4})},
    [VERIFY_SWAPPED_PAIR] = {"swapped_pair", 1, 16, RUNS({8, 8}, {0, 4})},
    [VERIFY_CONTIGUOUS] = {"contiguous", 6, 24, RUNS({0, 24})},
    [VERIFY_VECTOR] = {"vector", 6, 40, RUNS({0, 8}, {16, 8}, {32, 8})},
    [VERIFY_INDEXED] = {"indexed", 6, 24, RUNS({16, 8}, {0, 4}, {4, 12})},
    [VERIFY_HINDEXED] = {"hindexed", 6, 48, RUNS({44, 4}, {0, 12}, {20, 8})},
    [VERIFY_NEGATIVE] = {"negative", 6, 44, RUNS({-8, 8}, {4, 4}, {12, 12})},
    [VERIFY_NESTED] = {"nested", 6, 40, RUNS({0, 4}, {8, 4}, {16, 4}, {20, 4}, {28, 4}, {36, 4})},
    [VERIFY_WHOLE] = {"whole", 1, 8, RUNS({0, 4})},
};

/* SimGrid counts the hole of MPI_DOUBLE_INT as data: size 16, and its own messages carry it too. */
static const verify_run double_int_with_hole[] = {{0, 16}};

static bool hole_is_data(verify_kind kind) {
    int size;
    MPI_Type_size(MPI_DOUBLE_INT, &size);
    return kind == VERIFY_DOUBLE_INT && size == 16;
}

/* A struct with the extent set, which SimGrid would not round up to the alignment. */
static MPI_Datatype resized_struct(int members, const int *lengths, const MPI_Aint *places, const MPI_Datatype *types,
                                   MPI_Aint low, MPI_Aint extent) {
    MPI_Datatype type, resized;
    MPI_Type_create_struct(members, lengths, places, types, &type);
    MPI_Type_create_resized(type, low, extent, &resized);
    MPI_Type_free(&type);
    return resized;
}

static MPI_Datatype pair(MPI_Aint double_place, MPI_Aint int_place) {
    return resized_struct(2, (const int[]){1, 1}, (const MPI_Aint[]){double_place, int_place},
                          (const MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, 0, 16);
}

static MPI_Datatype negative(void) {
    return resized_struct(3, (const int[]){2, 1, 3}, (const MPI_Aint[]){-8, 4, 12},
                          (const MPI_Datatype[]){MPI_INT, MPI_INT, MPI_INT}, -12, 44);
}

static MPI_Datatype nested(void) {
    MPI_Datatype vector, duplicate, type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_dup(vector, &duplicate);
    MPI_Type_contiguous(2, duplicate, &type);
    MPI_Type_free(&vector);
    MPI_Type_free(&duplicate);
    return type;
}

static bool is_named(verify_kind kind) { return kind <= VERIFY_DOUBLE_INT; }

static MPI_Datatype make_type(verify_kind kind, int ints) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    switch (kind) {
    case VERIFY_INT:
        return MPI_INT;
    case VERIFY_BYTE:
        return MPI_BYTE;
    case VERIFY_DOUBLE_INT:
        return MPI_DOUBLE_INT;
    case VERIFY_PAIR:
        type = pair(0, 8);
        break;
    case VERIFY_SWAPPED_PAIR:
        type = pair(8, 0);
        break;
    case VERIFY_CONTIGUOUS:
        MPI_Type_contiguous(6, MPI_INT, &type);
        break;
    case VERIFY_VECTOR:
        MPI_Type_vector(3, 2, 4, MPI_INT, &type);
        break;
    case VERIFY_INDEXED:
        MPI_Type_indexed(3, (const int[]){2, 1, 3}, (const int[]){4, 0, 1}, MPI_INT, &type);
        break;
    case VERIFY_HINDEXED:
        MPI_Type_create_hindexed(3, (const int[]){1, 3, 2}, (const MPI_Aint[]){44, 0, 20}, MPI_INT, &type);
        break;
    case VERIFY_NEGATIVE:
        type = negative();
        break;
    case VERIFY_NESTED:
        type = nested();
        break;
    case VERIFY_WHOLE:
        MPI_Type_vector(ints > 0 ? ints : 1, 1, 2, MPI_INT, &type);
        break;
    }
    MPI_Type_commit(&type);
    return type;
}

verify_layout verify_layout_make(verify_kind kind, int ints) {
    int each = maps[kind].ints_per_element;
    int elements = (ints + each - 1) / each;
    verify_layout layout = {.kind = kind,
                            .type = make_type(kind, ints),
                            .count = elements,
                            .runs = maps[kind].runs,
                            .run_count = maps[kind].run_count,
                            .repeats = (size_t)elements,
                            .stride = maps[kind].extent,
                            .extent = elements * maps[kind].extent};
    if (hole_is_data(kind)) {
        layout.runs = double_int_with_hole;
        layout.run_count = 1;
    }
    if (kind == VERIFY_WHOLE && ints > 0) {
        layout.count = 1;
        layout.extent -= (ptrdiff_t)sizeof(int); /* the last element has no gap behind it */
    }
    return layout;
}

void verify_layout_free(verify_layout *layout) {
    if (!is_named(layout->kind)) {
        MPI_Type_free(&layout->type);
    }
}

const char *verify_kind_name(verify_kind kind) { return maps[kind].name; }

size_t verify_message_bytes(verify_kind kind, int ints) {
    int each = maps[kind].ints_per_element;
    size_t bytes = 0;
    for (size_t i = 0; i < maps[kind].run_count; i++) {
        bytes += maps[kind].runs[i].bytes;
    }
    return (size_t)((ints + each - 1) / each) * bytes;
}

verify_image verify_image_make(const verify_layout *layout, int messages) {
    verify_image image = {.bytes = (size_t)messages * (size_t)layout->extent + 2 * (size_t)MARGIN_BYTES};
    image.memory = collwise_allocate(image.bytes, MPI_COMM_WORLD);
    memset(image.memory, GUARD, image.bytes);
    return image;
}

verify_image verify_image_copy(const verify_image *image) {
    verify_image copy = {.memory = collwise_allocate(image->bytes, MPI_COMM_WORLD), .bytes = image->bytes};
    memcpy(copy.memory, image->memory, image->bytes);
    return copy;
}

void verify_image_free(verify_image *image) {
    free(image->memory);
    image->memory = NULL;
}

char *verify_image_buffer(const verify_image *image) { return image->memory + MARGIN_BYTES; }

static char pattern(unsigned serial, int rank, unsigned i) {
    unsigned mixed = (serial * 2654435761u) ^ ((unsigned)rank * 2246822519u) ^ (i * 3266489917u);
    mixed ^= mixed >> 15;
    mixed *= 668265263u;
    return (char)(mixed >> 17);
}

void verify_image_write(verify_image *image, const verify_layout *layout, int index, unsigned serial, int rank) {
    char *element = verify_image_buffer(image) + index * layout->extent;
    unsigned i = 0;
    for (size_t repeat = 0; repeat < layout->repeats; repeat++, element += layout->stride) {
        for (const verify_run *run = layout->runs; run < layout->runs + layout->run_count; run++) {
            for (size_t byte = 0; byte < run->bytes; byte++) {
                element[run->offset + (ptrdiff_t)byte] = pattern(serial, rank, i++);
            }
        }
    }
}

bool verify_image_differs(const verify_image *expected, const verify_image *found, ptrdiff_t *where) {
    if (memcmp(expected->memory, found->memory, expected->bytes) == 0) {
        return false;
    }
    size_t i = 0;
    while (expected->memory[i] == found->memory[i]) {
        i++;
    }
    *where = (ptrdiff_t)i - MARGIN_BYTES;
    return true;
}
