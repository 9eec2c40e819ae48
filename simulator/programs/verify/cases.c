/* What a call can be: its data, operation and parameters, from lists; and a call in words. */
#include "verify.h"

#include <stdio.h>
#include <string.h>

/* The lengths of these lists (3, 8, 11, 17, 23, and 5 by twos for in place; verify.c has one of 7) have no common
 * factor: case i takes entry i modulo the length of each, and any two lists are combined in full by as many cases in a
 * row as their product. */
enum { ROOTS = 3, IN_PLACE = 2, IN_PLACE_OF = 5 };
/* Blocks of all processes share MAX_INTS; other data has up to MAX_ALONE, more than Open MPI, MPICH and SMPI send
 * eagerly. */
enum { MAX_INTS = 50000, MAX_ALONE = 20000, MAX_SEGMENTS = 64 };
/* Every element of a vast type takes a page and a mapping of memory, also in simulation, where one program has all. */
enum { MAX_VAST_INTS = 12, MAX_VAST_PROCS = 16 };
static const size_t part_sizes[] = {0, 1, 7, 100, 1024, 4097, 8192, 10000000};
static const size_t limits[] = {0, 4, 4035, 28, 0, 8072, 0, 100000, 4036, 0, 16144, 1, 0, 4037, 200000, 1000, 0};
static const int counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 100};
static const verify_kind kinds[][2] = {
    {VERIFY_INT, VERIFY_INT},
    {VERIFY_BYTE, VERIFY_BYTE},
    {VERIFY_DOUBLE_INT, VERIFY_DOUBLE_INT},
    {VERIFY_CONTIGUOUS, VERIFY_ADJACENT},
    {VERIFY_VECTOR, VERIFY_VECTOR},
    {VERIFY_INTERLEAVED, VERIFY_DEEP},
    {VERIFY_INDEXED, VERIFY_INDEXED},
    {VERIFY_ADJACENT_BELOW, VERIFY_HINDEXED},
    {VERIFY_PAIR, VERIFY_SWAPPED_PAIR},
    {VERIFY_SPREAD, VERIFY_BACKWARDS},
    {VERIFY_HINDEXED, VERIFY_ADJACENT_STRUCT},
    {VERIFY_NEGATIVE, VERIFY_NEGATIVE},
    {VERIFY_ADJACENT, VERIFY_ADJACENT_BELOW},
    {VERIFY_WHOLE, VERIFY_INT},
    {VERIFY_DEEP, VERIFY_SPREAD},
    {VERIFY_ADJACENT_STRUCT, VERIFY_INTERLEAVED},
    {VERIFY_INT, VERIFY_WHOLE},
    {VERIFY_VECTOR, VERIFY_CONTIGUOUS},
    {VERIFY_NESTED, VERIFY_BACKWARDS},
    {VERIFY_PADDED, VERIFY_ROOMY},
    {VERIFY_VAST, VERIFY_PADDED},
    {VERIFY_ROOMY, VERIFY_VECTOR},
    {VERIFY_INDEXED, VERIFY_VAST},
};
/* As many as kinds, which reductions do not look at. */
static const struct {
    verify_operation operation;
    verify_kind operand;
} reductions[] = {
    {VERIFY_SUM, VERIFY_INT},          {VERIFY_COMPOSE, VERIFY_CONTIGUOUS},     {VERIFY_MAXLOC, VERIFY_DOUBLE_INT},
    {VERIFY_COMPOSE, VERIFY_ADJACENT}, {VERIFY_ROUNDED_SUM, VERIFY_DOUBLE},     {VERIFY_CIRCLE, VERIFY_INTERLEAVED},
    {VERIFY_COMPOSE, VERIFY_VECTOR},   {VERIFY_COMPOSE, VERIFY_SPREAD},         {VERIFY_XOR, VERIFY_BYTE},
    {VERIFY_CIRCLE, VERIFY_NEGATIVE},  {VERIFY_COMPOSE, VERIFY_ADJACENT_BELOW}, {VERIFY_CIRCLE, VERIFY_INT},
    {VERIFY_COMPOSE, VERIFY_INDEXED},  {VERIFY_CIRCLE, VERIFY_ADJACENT_STRUCT}, {VERIFY_COMPOSE, VERIFY_DEEP},
    {VERIFY_MAX, VERIFY_DOUBLE},       {VERIFY_COMPOSE, VERIFY_HINDEXED},       {VERIFY_CIRCLE, VERIFY_BACKWARDS},
    {VERIFY_COMPOSE, VERIFY_NESTED},   {VERIFY_COMPOSE, VERIFY_PADDED},         {VERIFY_SUM, VERIFY_INT},
    {VERIFY_CIRCLE, VERIFY_ROOMY},     {VERIFY_COMPOSE, VERIFY_ROOMY},
};

#define ENTRY(list, index) (list)[(index) % (sizeof(list) / sizeof *(list))]

static size_t largest(size_t a, size_t b) { return a > b ? a : b; }

static int least(int a, int b) { return a < b ? a : b; }

static bool is_vast(const verify_call *call) { return call->kinds[0] == VERIFY_VAST || call->kinds[1] == VERIFY_VAST; }

/* All data of a process is bounded, and so is the work of its references. */
static int bounded(int ints, const verify_call *call, int procs) {
    collwise_collective kind = call->algorithm->kind;
    bool blocks_of_all = (kind >= COLLWISE_ALLGATHER && kind <= COLLWISE_ALLTOALLV) ||
                         kind == COLLWISE_REDUCE_SCATTER || kind == COLLWISE_REDUCE_SCATTER_BLOCK;
    if (!verify_is_reduction(kind) && is_vast(call)) {
        return procs > MAX_VAST_PROCS ? 0 : least(ints, MAX_VAST_INTS);
    }
    return least(ints, blocks_of_all ? MAX_INTS / procs : least(MAX_INTS / procs * 8, MAX_ALONE));
}

static bool is_parameter(const char *name, const char *wanted) { return name != NULL && strcmp(name, wanted) == 0; }

verify_call verify_call_of(const collwise_algorithm *algorithm, unsigned serial, const unsigned at[VERIFY_LISTS],
                           int ints, int procs) {
    const int roots[ROOTS] = {0, procs / 2, procs - 1};
    verify_call call = {.algorithm = algorithm,
                        .serial = serial,
                        .root = ENTRY(roots, at[VERIFY_ROOTS]),
                        .kinds = {ENTRY(kinds, at[VERIFY_DATA])[0], ENTRY(kinds, at[VERIFY_DATA])[1]},
                        .operation = ENTRY(reductions, at[VERIFY_REDUCTIONS]).operation,
                        .operand = ENTRY(reductions, at[VERIFY_REDUCTIONS]).operand,
                        .in_place = at[VERIFY_PLACES] % IN_PLACE_OF < IN_PLACE,
                        .with = {.part_bytes = ENTRY(part_sizes, at[VERIFY_PARTS]),
                                 .count = ENTRY(counts, at[VERIFY_COUNTS]),
                                 .limit_bytes = ENTRY(limits, at[VERIFY_LIMITS])}};
    call.ints = bounded(ints, &call, procs);
    if (call.with.part_bytes > 0) { /* tiny segments of a large message would take minutes to simulate */
        size_t bytes = verify_message_bytes(call.kinds[0], call.ints);
        call.with.part_bytes = largest(call.with.part_bytes, bytes / MAX_SEGMENTS);
    }
    if (is_parameter(algorithm->limit_parameter, "between_segment_bytes") && call.with.between_segment_bytes > 0) {
        size_t bytes = verify_message_bytes(call.kinds[0], call.ints);
        call.with.between_segment_bytes = largest(call.with.between_segment_bytes, bytes / MAX_SEGMENTS);
    }
    if (verify_has_within(algorithm)) {
        call.with.within %= COLLWISE_WITHIN_FORMS;
    }
    return call;
}

bool verify_has_within(const collwise_algorithm *algorithm) {
    return is_parameter(algorithm->count_parameter, "within");
}

/* Adds to a text, as much as there is room for. */
#define ADD(text, ...)                                                                                                 \
    do {                                                                                                               \
        size_t length = strlen(text);                                                                                  \
        snprintf((text) + length, VERIFY_TEXT - length, __VA_ARGS__);                                                  \
    } while (0)

void verify_describe_parameters(const collwise_algorithm *algorithm, collwise_parameters with, char text[VERIFY_TEXT]) {
    if (algorithm->part_parameter != NULL) {
        ADD(text, ", %s %zu", algorithm->part_parameter, with.part_bytes);
    }
    if (algorithm->limit_parameter != NULL) {
        ADD(text, ", %s %zu", algorithm->limit_parameter, with.limit_bytes);
    }
    if (algorithm->count_parameter != NULL) {
        ADD(text, ", %s %d", algorithm->count_parameter, with.count);
    }
}

void verify_describe_data(const verify_call *call, char text[VERIFY_TEXT]) {
    if (call->algorithm->kind == COLLWISE_BARRIER) {
        return;
    }
    ADD(text, ", root %d, %d items, ", call->root, call->ints);
    if (verify_is_reduction(call->algorithm->kind)) {
        ADD(text, "%s of %s", verify_operation_name(call->operation), verify_kind_name(call->operand));
    } else {
        ADD(text, "%s and %s", verify_kind_name(call->kinds[0]), verify_kind_name(call->kinds[1]));
    }
    ADD(text, "%s%s", call->in_place ? ", in place" : "", call->is_absolute ? ", absolute addresses" : "");
}
