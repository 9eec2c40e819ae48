/* Data for verify: every datatype with its type map written out by hand, and memory before and after a call. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 0xA5, MARGIN_BYTES = 128 };

/* The extent of a vast element: pages of any size begin at its multiples. */
#define VAST_BYTES (((ptrdiff_t)1 << 31) + (1 << 16))

#define RUNS(...)                                                                                                      \
    (sizeof((run[]){__VA_ARGS__}) / sizeof(run)), (const run[]) { __VA_ARGS__ }

/* A run of a datatype's bytes: they lie together in memory and follow one another in the signature. */
typedef struct {
    ptrdiff_t offset;
    size_t bytes;
} run;

/* Type maps, in signature order. SimGrid counts the hole of MPI_DOUBLE_INT as data and moves it along: it comes out
 * right all the same, since all processes have guard bytes there. */
static const struct {
    const char *name;
    int ints_per_element;
    ptrdiff_t extent;
    size_t run_count;
    const run *runs;
} maps[] = {
    [VERIFY_INT] = {"int", 1, 4, RUNS({0, 4})},
    [VERIFY_BYTE] = {"byte", 1, 1, RUNS({0, 1})},
    [VERIFY_DOUBLE] = {"double", 1, 8, RUNS({0, 8})},
    [VERIFY_DOUBLE_INT] = {"double_int", 1, 16, RUNS({0, 8}, {8, 4})},
    [VERIFY_STRIDED] = {"strided", 1, 8, RUNS({0, 4})},
    [VERIFY_PAIR] = {"pair", 1, 16, RUNS({0, 8}, {8, 4})},
    [VERIFY_SWAPPED_PAIR] = {"swapped_pair", 1, 16, RUNS({8, 8}, {0, 4})},
    [VERIFY_CONTIGUOUS] = {"contiguous", 6, 24, RUNS({0, 24})},
    [VERIFY_VECTOR] = {"vector", 6, 40, RUNS({0, 8}, {16, 8}, {32, 8})},
    [VERIFY_INDEXED] = {"indexed", 6, 24, RUNS({16, 8}, {0, 4}, {4, 12})},
    [VERIFY_HINDEXED] = {"hindexed", 6, 48, RUNS({44, 4}, {0, 12}, {20, 8})},
    [VERIFY_NEGATIVE] = {"negative", 6, 44, RUNS({-8, 8}, {4, 4}, {12, 12})},
    [VERIFY_NESTED] = {"nested", 6, 40, RUNS({0, 4}, {8, 4}, {16, 4}, {20, 4}, {28, 4}, {36, 4})},
    [VERIFY_PADDED] = {"padded", 6, 40, RUNS({0, 4}, {8, 12}, {28, 8})},
    [VERIFY_ROOMY] = {"roomy", 6, 32, RUNS({0, 24})},
    [VERIFY_VAST] = {"vast", 6, VAST_BYTES, RUNS({VAST_BYTES - 12, 12}, {0, 12})},
    [VERIFY_ADJACENT] = {"adjacent", 6, 24, RUNS({16, 24})},
    [VERIFY_ADJACENT_STRUCT] = {"adjacent_struct", 6, 24, RUNS({8, 24})},
    [VERIFY_ADJACENT_BELOW] = {"adjacent_below", 6, 24, RUNS({-48, 24})},
    [VERIFY_SPREAD] = {"spread", 6, 44, RUNS({-16, 8}, {0, 8}, {20, 8})},
    [VERIFY_BACKWARDS] = {"backwards", 6, 40, RUNS({0, 8}, {-16, 8}, {-32, 8})},
    [VERIFY_INTERLEAVED] = {"interleaved", 6, 24, RUNS({32, 8}, {16, 8}, {-24, 8})},
    [VERIFY_DEEP] = {"deep", 6, 88, RUNS({24, 4}, {16, 4}, {-8, 4}, {68, 4}, {60, 4}, {36, 4})},
    [VERIFY_WHOLE] = {"whole", 1, 8, RUNS({0, 4})},
};

/* Frees the type that is resized. */
static MPI_Datatype resized(MPI_Datatype type, MPI_Aint low, MPI_Aint extent) {
    MPI_Datatype made;
    MPI_Type_create_resized(type, low, extent, &made);
    MPI_Type_free(&type);
    return made;
}

/* A struct with the extent set, which SimGrid would not round up to the alignment. */
static MPI_Datatype resized_struct(int members, const int *lengths, const MPI_Aint *places, const MPI_Datatype *types,
                                   MPI_Aint low, MPI_Aint extent) {
    MPI_Datatype type;
    MPI_Type_create_struct(members, lengths, places, types, &type);
    return resized(type, low, extent);
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

static MPI_Datatype padded(void) {
    return resized_struct(3, (const int[]){1, 3, 2}, (const MPI_Aint[]){0, 8, 28},
                          (const MPI_Datatype[]){MPI_INT, MPI_INT, MPI_INT}, 0, 40);
}

static MPI_Datatype roomy(void) {
    MPI_Datatype six;
    MPI_Type_contiguous(6, MPI_INT, &six);
    return resized(six, 0, 32);
}

/* SimGrid has the extent of a negative stride wrong: it is set. */
static MPI_Datatype backwards(void) {
    MPI_Datatype vector;
    MPI_Type_vector(3, 2, -4, MPI_INT, &vector);
    return resized(vector, -32, 40);
}

static MPI_Datatype interleaved(void) {
    MPI_Datatype blocks;
    MPI_Type_create_hindexed(3, (const int[]){2, 2, 2}, (const MPI_Aint[]){32, 16, -24}, MPI_INT, &blocks);
    return resized(blocks, 0, 24);
}

static MPI_Datatype deep(void) {
    MPI_Datatype indexed, duplicate, wide, type;
    MPI_Type_indexed(2, (const int[]){1, 1}, (const int[]){2, 0}, MPI_INT, &indexed);
    MPI_Type_dup(indexed, &duplicate);
    MPI_Type_create_resized(MPI_INT, -4, 12, &wide);
    MPI_Datatype three = resized_struct(2, (const int[]){1, 1}, (const MPI_Aint[]){16, -8},
                                        (const MPI_Datatype[]){duplicate, wide}, -12, 40);
    MPI_Type_create_hvector(2, 1, 44, three, &type);
    MPI_Type_free(&indexed);
    MPI_Type_free(&duplicate);
    MPI_Type_free(&wide);
    MPI_Type_free(&three);
    return resized(type, -8, 88);
}

static bool is_named(verify_kind kind) { return kind <= VERIFY_DOUBLE_INT; }

static MPI_Datatype make_type(verify_kind kind, int ints) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    switch (kind) {
    case VERIFY_INT:
        return MPI_INT;
    case VERIFY_BYTE:
        return MPI_BYTE;
    case VERIFY_DOUBLE:
        return MPI_DOUBLE;
    case VERIFY_DOUBLE_INT:
        return MPI_DOUBLE_INT;
    case VERIFY_STRIDED:
        MPI_Type_create_resized(MPI_INT, 0, 8, &type);
        break;
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
    case VERIFY_PADDED:
        type = padded();
        break;
    case VERIFY_ROOMY:
        type = roomy();
        break;
    case VERIFY_VAST:
        MPI_Type_create_hindexed(2, (const int[]){3, 3}, (const MPI_Aint[]){VAST_BYTES - 12, 0}, MPI_INT, &type);
        break;
    case VERIFY_ADJACENT:
        MPI_Type_indexed(3, (const int[]){2, 2, 2}, (const int[]){4, 6, 8}, MPI_INT, &type);
        break;
    case VERIFY_ADJACENT_STRUCT:
        MPI_Type_create_struct(2, (const int[]){2, 4}, (const MPI_Aint[]){8, 16},
                               (const MPI_Datatype[]){MPI_INT, MPI_INT}, &type);
        break;
    case VERIFY_ADJACENT_BELOW:
        MPI_Type_create_indexed_block(3, 2, (const int[]){-12, -10, -8}, MPI_INT, &type);
        break;
    case VERIFY_SPREAD:
        MPI_Type_create_indexed_block(3, 2, (const int[]){-4, 0, 5}, MPI_INT, &type);
        break;
    case VERIFY_BACKWARDS:
        type = backwards();
        break;
    case VERIFY_INTERLEAVED:
        type = interleaved();
        break;
    case VERIFY_DEEP:
        type = deep();
        break;
    case VERIFY_WHOLE:
        MPI_Type_vector(ints > 0 ? ints : 1, 1, 2, MPI_INT, &type);
        break;
    case VERIFY_KINDS:
        break;
    }
    MPI_Type_set_name(type, maps[kind].name);
    MPI_Type_commit(&type);
    return type;
}

const char *verify_kind_name(verify_kind kind) { return maps[kind].name; }

static size_t map_bytes(verify_kind kind) {
    size_t bytes = 0;
    for (size_t i = 0; i < maps[kind].run_count; i++) {
        bytes += maps[kind].runs[i].bytes;
    }
    return bytes;
}

int verify_elements(verify_kind kind, int ints) {
    int each = maps[kind].ints_per_element;
    return kind == VERIFY_WHOLE ? ints > 0 : (ints + each - 1) / each;
}

size_t verify_message_bytes(verify_kind kind, int ints) {
    int maps_in_all = kind == VERIFY_WHOLE ? ints : verify_elements(kind, ints);
    return (size_t)maps_in_all * map_bytes(kind);
}

MPI_Datatype verify_type_at(const void *buffer, MPI_Datatype type) {
    MPI_Datatype made;
    MPI_Aint address;
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Type_get_name(type, name, &length);
    MPI_Get_address(buffer, &address);
    MPI_Type_create_hindexed(1, (const int[]){1}, &address, type, &made);
    snprintf(name + length, sizeof name - (size_t)length, "@%td", (ptrdiff_t)address);
    MPI_Type_set_name(made, name);
    MPI_Type_commit(&made);
    return made;
}

verify_kind verify_kind_of_six(MPI_Datatype type, ptrdiff_t *address) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length, kind = 0;
    MPI_Type_get_name(type, name, &length);
    char *at = strchr(name, '@');
    *address = at == NULL ? 0 : strtoll(at + 1, NULL, 10);
    length = at == NULL ? length : (int)(at - name);
    name[length] = '\0';
    while (kind < VERIFY_KINDS && (maps[kind].ints_per_element != VERIFY_SIX || strcmp(maps[kind].name, name) != 0)) {
        kind++;
    }
    return (verify_kind)kind;
}

void verify_places_of_six(verify_kind kind, ptrdiff_t places[VERIFY_SIX]) {
    int found = 0;
    for (size_t i = 0; i < maps[kind].run_count; i++) {
        const run *run = &maps[kind].runs[i];
        for (size_t byte = 0; byte < run->bytes; byte += sizeof(int)) {
            places[found++] = run->offset + (ptrdiff_t)byte;
        }
    }
}

/* Everything but where the blocks are. */
static verify_buffer start_buffer(verify_kind kind, int ints, int blocks) {
    verify_buffer buffer = {.kind = kind,
                            .type = make_type(kind, ints),
                            .blocks = blocks,
                            .counts = collwise_allocate((size_t)blocks * sizeof(int), MPI_COMM_WORLD),
                            .displacements = collwise_allocate((size_t)blocks * sizeof(int), MPI_COMM_WORLD),
                            .repeats = 1,
                            .extent = maps[kind].extent};
    if (kind == VERIFY_WHOLE && ints > 0) {
        buffer.repeats = ints;
        buffer.extent = ints * maps[kind].extent - (ptrdiff_t)sizeof(int); /* the last int has no gap behind it */
    }
    return buffer;
}

/* Memory of which only the parts can be used, and are filled with guard bytes. */
static char *guarded(const verify_buffer *buffer) {
    char *memory;
    if (buffer->kind == VERIFY_VAST) {
        memory = mmap(NULL, buffer->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (size_t i = 0; i < buffer->parts; i++) {
            if (memory == MAP_FAILED ||
                mprotect(memory + i * buffer->step, buffer->part_bytes, PROT_READ | PROT_WRITE) != 0) {
                perror("verify: no memory for a vast type");
                MPI_Abort(MPI_COMM_WORLD, 2);
            }
        }
    } else {
        memory = collwise_allocate(buffer->bytes, MPI_COMM_WORLD);
    }
    for (size_t i = 0; i < buffer->parts; i++) {
        memset(memory + i * buffer->step, GUARD, buffer->part_bytes);
    }
    return memory;
}

/* `elements` are what the blocks and their gaps take in all, `before` those of them that lie before element 0. Data of
 * a vast type lies on both sides of where elements begin and end: in the middle of pages. */
static void guard(verify_buffer *buffer, int elements, int before) {
    bool is_vast = buffer->kind == VERIFY_VAST;
    size_t span = (size_t)(elements * buffer->extent), page = (size_t)sysconf(_SC_PAGESIZE);
    buffer->parts = is_vast ? (size_t)elements + 1 : 1;
    buffer->step = (size_t)buffer->extent;
    buffer->part_bytes = is_vast ? page : span + 2 * (size_t)MARGIN_BYTES;
    buffer->bytes = is_vast ? span + page : buffer->part_bytes;
    buffer->origin = (is_vast ? (ptrdiff_t)page / 2 : MARGIN_BYTES) + before * buffer->extent;
    buffer->found = guarded(buffer);
    buffer->expected = guarded(buffer);
}

verify_buffer verify_buffer_of_blocks(verify_kind kind, int ints, int blocks) {
    verify_buffer buffer = start_buffer(kind, ints, blocks);
    int elements = verify_elements(kind, ints);
    for (int i = 0; i < blocks; i++) {
        buffer.counts[i] = elements;
        buffer.displacements[i] = i * elements;
    }
    guard(&buffer, blocks * elements, 0);
    return buffer;
}

verify_buffer verify_buffer_of_one(verify_kind kind, int ints) { return verify_buffer_of_blocks(kind, ints, 1); }

verify_buffer verify_buffer_of_scattered(verify_kind kind, const int *ints, int blocks, unsigned serial) {
    verify_kind usable = kind == VERIFY_WHOLE ? VERIFY_STRIDED : kind;
    verify_buffer buffer = start_buffer(usable, 0, blocks);
    bool in_order = serial % 4 == 0;
    int before = (int)(serial % 3), next = in_order ? 2 : 0;
    for (int i = 0; i < blocks; i++) {
        int block = in_order ? i : (int)(((unsigned)(blocks - 1 - i) + serial) % (unsigned)blocks);
        next += in_order ? 0 : (int)((serial + (unsigned)i) % 3);
        buffer.counts[block] = verify_elements(usable, ints[block]);
        buffer.displacements[block] = next - before;
        next += buffer.counts[block];
    }
    guard(&buffer, next, before);
    return buffer;
}

void verify_buffer_free(verify_buffer *buffer) {
    if (!is_named(buffer->kind)) {
        MPI_Type_free(&buffer->type);
    }
    free(buffer->counts);
    free(buffer->displacements);
    if (buffer->kind == VERIFY_VAST) {
        munmap(buffer->found, buffer->bytes);
        munmap(buffer->expected, buffer->bytes);
    } else {
        free(buffer->found);
        free(buffer->expected);
    }
}

void *verify_buffer_pointer(const verify_buffer *buffer) { return buffer->found + buffer->origin; }

static void write_block(const verify_buffer *buffer, char *memory, int block, const char *packed) {
    const run *first = maps[buffer->kind].runs, *end = first + maps[buffer->kind].run_count;
    char *element = memory + buffer->origin + buffer->displacements[block] * buffer->extent;
    for (int i = 0; i < buffer->counts[block]; i++, element += buffer->extent) {
        for (int repeat = 0; repeat < buffer->repeats; repeat++) {
            for (const run *run = first; run < end; packed += run->bytes, run++) {
                memcpy(element + repeat * maps[buffer->kind].extent + run->offset, packed, run->bytes);
            }
        }
    }
}

void verify_buffer_write(verify_buffer *buffer, verify_time when, int block, const char *packed) {
    if (when & VERIFY_BEFORE) {
        write_block(buffer, buffer->found, block, packed);
    }
    if (when & VERIFY_AFTER) {
        write_block(buffer, buffer->expected, block, packed);
    }
}

void verify_buffer_fill(verify_buffer *buffer, verify_time when, int block, unsigned serial, int message) {
    size_t bytes = (size_t)buffer->counts[block] * (size_t)buffer->repeats * map_bytes(buffer->kind);
    char *packed = collwise_allocate(bytes, MPI_COMM_WORLD);
    for (size_t i = 0; i < bytes; i++) {
        packed[i] = (char)verify_mix(serial, message, (unsigned)i);
    }
    verify_buffer_write(buffer, when, block, packed);
    free(packed);
}

/* The first byte that is not what it should be; the buffer's size if there is none. */
static size_t first_wrong_byte(const verify_buffer *buffer) {
    for (size_t part = 0; part < buffer->parts; part++) {
        size_t i = part * buffer->step, end = i + buffer->part_bytes;
        if (memcmp(buffer->expected + i, buffer->found + i, buffer->part_bytes) != 0) {
            while (i < end && buffer->expected[i] == buffer->found[i]) {
                i++;
            }
            return i;
        }
    }
    return buffer->bytes;
}

bool verify_buffer_is_right(const verify_buffer *buffer, const char *name, MPI_Comm comm, char *complaint) {
    size_t first = first_wrong_byte(buffer);
    if (first == buffer->bytes) {
        return true;
    }
    int rank;
    MPI_Comm_rank(comm, &rank);
    snprintf(complaint, VERIFY_TEXT, "rank %d has a wrong byte at offset %td of its %s buffer", rank,
             (ptrdiff_t)first - buffer->origin, name);
    return false;
}
