/* The reductions: each called once and compared with the contributions of the processes, combined here one after the
 * other in rank order. */
#include "timing.h"
#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Operations -------------------------------------------------------------------------------------------------- */

typedef void combination(uint32_t *total, const uint32_t *next);

/* total = total o next, where a pair (a, b) of ints stands for the map x -> a x + b modulo 2^32. */
static void compose_maps(uint32_t *total, const uint32_t *next) {
    for (int i = 0; i < VERIFY_SIX; i += 2) {
        total[i + 1] += total[i] * next[i + 1];
        total[i] *= next[i];
    }
}

/* The circle operation of the ring of integers modulo 2^32. */
static uint32_t circle(uint32_t x, uint32_t y) { return x + y + x * y; }

static void circle_of_six(uint32_t *total, const uint32_t *next) {
    for (int i = 0; i < VERIFY_SIX; i++) {
        total[i] = circle(total[i], next[i]);
    }
}

static void get_six(uint32_t *six, const char *element, const ptrdiff_t *places) {
    for (int i = 0; i < VERIFY_SIX; i++) {
        memcpy(&six[i], element + places[i], sizeof *six);
    }
}

static void put_six(const uint32_t *six, char *element, const ptrdiff_t *places) {
    for (int i = 0; i < VERIFY_SIX; i++) {
        memcpy(element + places[i], &six[i], sizeof *six);
    }
}

/* The function that MPI calls: right = left op right for `length` elements of a datatype known by its handle only. Any
 * other datatype leaves `right` as it is, which comes out as wrong. */
static void combine_in_layout(const char *left, char *right, int length, MPI_Datatype type, combination *combine) {
    ptrdiff_t places[VERIFY_SIX], address;
    verify_kind kind = verify_kind_of_six(type, &address);
    MPI_Aint low, extent;
    if (kind == VERIFY_KINDS) {
        return;
    }
    verify_places_of_six(kind, places);
    MPI_Type_get_extent(type, &low, &extent);
    left += address;
    right += address;
    for (int i = 0; i < length; i++, left += extent, right += extent) {
        uint32_t total[VERIFY_SIX], next[VERIFY_SIX];
        get_six(total, left, places);
        get_six(next, right, places);
        combine(total, next);
        put_six(total, right, places);
    }
}

/* The most elements that an operation of our own was given at once. MPI never gives it more than the call has, and a
 * program's operation may rely on that. Simulated processes, which share this, are not asked. */
static _Thread_local int max_given;

static void note_given(int length) { max_given = length > max_given ? length : max_given; }

static void compose_function(void *left, void *right, int *length, MPI_Datatype *type) {
    note_given(*length);
    combine_in_layout(left, right, *length, *type, compose_maps);
}

static void circle_function(void *left, void *right, int *length, MPI_Datatype *type) {
    note_given(*length);
    if (*type != MPI_INT) {
        combine_in_layout(left, right, *length, *type, circle_of_six);
        return;
    }
    const uint32_t *x = left;
    uint32_t *y = right;
    for (int i = 0; i < *length; i++) {
        y[i] = circle(x[i], y[i]);
    }
}

const char *verify_operation_name(verify_operation operation) {
    static const char *const names[] = {
        [VERIFY_SUM] = "sum",
        [VERIFY_MAX] = "max",
        [VERIFY_XOR] = "bxor",
        [VERIFY_MAXLOC] = "maxloc",
        [VERIFY_CIRCLE] = "circle",
        [VERIFY_ROUNDED_SUM] = "rounded sum",
        [VERIFY_COMPOSE] = "non-commutative composition",
    };
    return names[operation];
}

MPI_Op verify_operation_make(verify_operation operation) {
    MPI_Op op = MPI_OP_NULL;
    switch (operation) {
    case VERIFY_SUM:
    case VERIFY_ROUNDED_SUM:
        return MPI_SUM;
    case VERIFY_MAX:
        return MPI_MAX;
    case VERIFY_XOR:
        return MPI_BXOR;
    case VERIFY_MAXLOC:
        return MPI_MAXLOC;
    case VERIFY_CIRCLE:
        MPI_Op_create(circle_function, 1, &op);
        break;
    case VERIFY_COMPOSE:
        MPI_Op_create(compose_function, 0, &op);
        break;
    }
    return op;
}

void verify_operation_free(verify_operation operation, MPI_Op *op) {
    if (operation >= VERIFY_CIRCLE) {
        MPI_Op_free(op);
    }
}

/* --- The reference ----------------------------------------------------------------------------------------------- */

/* One element, packed. */
typedef union {
    uint32_t six[VERIFY_SIX];
    int number;
    double real;
    unsigned char byte;
    char packed[VERIFY_SIX * sizeof(uint32_t)];
} element;

/* The contribution of `rank` as element `index`. Equal values that differ in their places are usual for maxloc. */
static element contribution(const verify_call *call, int rank, unsigned index) {
    element made = {.number = 0};
    uint32_t mixed = verify_mix(call->serial, rank, index);
    switch (call->operation) {
    case VERIFY_SUM:
        made.number = (int)(mixed % 2000001) - 1000000;
        break;
    case VERIFY_MAX:
        made.real = (double)(int)mixed / 8;
        break;
    case VERIFY_XOR:
        made.byte = (unsigned char)mixed;
        break;
    case VERIFY_MAXLOC:
        made.real = mixed % 3;
        memcpy(made.packed + sizeof(double), &(int){(int)(mixed >> 8) % 1000}, sizeof(int));
        break;
    case VERIFY_ROUNDED_SUM:
        made.real = 1 / (1.0 + mixed % 1000);
        break;
    case VERIFY_CIRCLE:
    case VERIFY_COMPOSE:
        for (unsigned i = 0; i < VERIFY_SIX; i++) {
            made.six[i] = verify_mix(call->serial, rank, VERIFY_SIX * index + i);
            /* Operations that can be undone lose nothing: composition by an odd factor, circle by an even number. */
            made.six[i] = call->operation == VERIFY_COMPOSE ? made.six[i] | (i % 2 == 0) : made.six[i] & ~1u;
        }
        break;
    }
    return made;
}

static int place_of_maximum(const element *one) {
    int place;
    memcpy(&place, one->packed + sizeof(double), sizeof place);
    return place;
}

/* total = total op next. */
static void combine(const verify_call *call, element *total, const element *next) {
    switch (call->operation) {
    case VERIFY_SUM:
        total->number += next->number;
        break;
    case VERIFY_MAX:
        total->real = total->real > next->real ? total->real : next->real;
        break;
    case VERIFY_XOR:
        total->byte ^= next->byte;
        break;
    case VERIFY_MAXLOC:
        if (next->real > total->real ||
            (next->real == total->real && place_of_maximum(next) < place_of_maximum(total))) {
            *total = *next;
        }
        break;
    case VERIFY_ROUNDED_SUM:
        total->real += next->real;
        break;
    case VERIFY_CIRCLE:
        circle_of_six(total->six, next->six);
        break;
    case VERIFY_COMPOSE:
        compose_maps(total->six, next->six);
        break;
    }
}

/* The packed elements from `first` on that ranks `from` up to before `end` make together. */
static char *reference(const verify_call *call, int from, int end, unsigned first, int elements) {
    size_t bytes = verify_message_bytes(call->operand, 1); /* of an element */
    char *packed = collwise_allocate((size_t)elements * bytes, MPI_COMM_WORLD);
    for (int i = 0; i < elements; i++) {
        element total = contribution(call, from, first + (unsigned)i);
        for (int rank = from + 1; rank < end; rank++) {
            element next = contribution(call, rank, first + (unsigned)i);
            combine(call, &total, &next);
        }
        memcpy(packed + (size_t)i * bytes, total.packed, bytes);
    }
    return packed;
}

/* --- Calls ------------------------------------------------------------------------------------------------------- */

/* One rank's contribution, or the result, of ranks `from` up to before `end`. */
static void put_block(verify_buffer *buffer, verify_time when, int block, const verify_call *call, int from, int end,
                      unsigned first) {
    char *packed = reference(call, from, end, first, buffer->counts[block]);
    verify_buffer_write(buffer, when, block, packed);
    free(packed);
}

/* Sums that are rounded may differ from the reference in their last bits. */
static void allow_rounding(verify_buffer *result) {
    double *found = verify_buffer_pointer(result), *expected = (double *)(result->expected + result->origin);
    for (int i = 0; i < result->counts[0]; i++) {
        if (fabs(found[i] - expected[i]) <= 1e-12 * fabs(expected[i])) {
            expected[i] = found[i];
        }
    }
}

static collwise_call reduction_call(const verify_call *call, const verify_buffer *sent, verify_buffer *result,
                                    MPI_Comm comm) {
    collwise_call made = verify_blank_call(call, comm);
    made.send = call->in_place && result != NULL ? MPI_IN_PLACE : verify_buffer_pointer(sent);
    made.receive = result != NULL ? verify_buffer_pointer(result) : NULL;
    made.receive_count = sent->counts[0];
    made.receive_type = sent->type;
    made.op = verify_operation_make(call->operation);
    return made;
}

/* The first process's result of allreduce is what all must have, to the last bit. */
static void expect_the_first_ones(verify_buffer *result, MPI_Comm comm) {
    MPI_Bcast(result->expected, (int)result->bytes, MPI_BYTE, 0, comm);
}

/* Makes the call and checks both buffers; `result` is NULL where there is none. */
static bool comes_out_right(const verify_call *call, collwise_call *made, const verify_buffer *sent,
                            verify_buffer *result, char complaint[VERIFY_TEXT]) {
    max_given = 0;
    verify_make(call, made);
    verify_operation_free(call->operation, &made->op);
    bool right = verify_buffer_is_right(sent, "send", made->comm, complaint);
    if (!COLLWISE_IS_SIMULATED && call->operation >= VERIFY_CIRCLE && max_given > sent->counts[0]) {
        snprintf(complaint, VERIFY_TEXT, "the operation was given %d elements, and the call has %d", max_given,
                 sent->counts[0]);
        right = false;
    }
    if (result != NULL && call->operation == VERIFY_ROUNDED_SUM) {
        allow_rounding(result);
        if (call->algorithm->kind == COLLWISE_ALLREDUCE) {
            expect_the_first_ones(result, made->comm);
        }
    }
    if (result != NULL) {
        right = right && verify_buffer_is_right(result, "receive", made->comm, complaint);
    }
    return right;
}

/* The common form: every process contributes one block, and those with a result get that of ranks 0 up to before
 * `end`; none for 0. */
static bool reduce_to(const verify_call *call, bool has_result, int end, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    verify_buffer sent = verify_buffer_of_one(call->operand, call->ints);
    verify_buffer result = verify_buffer_of_one(call->operand, call->ints);
    put_block(&sent, VERIFY_THROUGHOUT, 0, call, rank, rank + 1, 0);
    if (call->in_place) {
        put_block(&result, VERIFY_THROUGHOUT, 0, call, rank, rank + 1, 0);
    }
    if (end > 0) {
        put_block(&result, VERIFY_AFTER, 0, call, 0, end, 0);
    }
    collwise_call made = reduction_call(call, &sent, has_result ? &result : NULL, comm);
    bool right = comes_out_right(call, &made, &sent, has_result ? &result : NULL, complaint);
    verify_buffer_free(&sent);
    verify_buffer_free(&result);
    return right;
}

/* Reduce: the root ends with everybody's. */
bool verify_reduce(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_to(call, collwise_rank_in(comm) == call->root, collwise_size_of(comm), comm, complaint);
}

/* Scan: each process ends with that of itself and those before it. */
bool verify_scan(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_to(call, true, collwise_rank_in(comm) + 1, comm, complaint);
}

/* Exscan: each process ends with that of those before it; the first's buffer is left alone. */
bool verify_exscan(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_to(call, true, collwise_rank_in(comm), comm, complaint);
}

/* Allreduce: everybody ends with everybody's, all with the same bits. */
bool verify_allreduce(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_to(call, true, collwise_size_of(comm), comm, complaint);
}

/* Reduce-scatter: block i of everybody's ends at process i. In place, the result takes the start of the buffer, and
 * what is behind it stays. */
static bool reduce_scatter(const verify_call *call, const int *ints, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm), total = 0, first = 0;
    int *counts = collwise_allocate((size_t)procs * sizeof *counts, comm);
    for (int i = 0; i < procs; i++) {
        counts[i] = verify_elements(call->operand, ints[i]);
        first += i < rank ? counts[i] : 0;
        total += counts[i];
    }
    int each = verify_elements(call->operand, 6) == 1 ? 6 : 1; /* ints an element */
    verify_buffer sent = verify_buffer_of_one(call->operand, total * each);
    verify_buffer result = verify_buffer_of_one(call->operand, (call->in_place ? total : counts[rank]) * each);
    put_block(&sent, VERIFY_THROUGHOUT, 0, call, rank, rank + 1, 0);
    if (call->in_place) {
        put_block(&result, VERIFY_THROUGHOUT, 0, call, rank, rank + 1, 0);
        result.counts[0] = counts[rank];
    }
    put_block(&result, VERIFY_AFTER, 0, call, 0, procs, (unsigned)first);
    collwise_call made = reduction_call(call, &sent, &result, comm);
    if (call->algorithm->kind == COLLWISE_REDUCE_SCATTER) {
        made.receive_count = -1;
        made.receive_counts = counts;
    } else {
        made.receive_count = counts[rank];
    }
    bool right = comes_out_right(call, &made, &sent, &result, complaint);
    verify_buffer_free(&sent);
    verify_buffer_free(&result);
    free(counts);
    return right;
}

static bool reduce_scatter_by(const verify_call *call, bool differ, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int procs = collwise_size_of(comm);
    int *ints = collwise_allocate((size_t)procs * sizeof *ints, comm);
    for (int i = 0; i < procs; i++) {
        ints[i] = differ ? verify_differing_size(call->ints, call->serial + (unsigned)i) : call->ints;
    }
    bool right = reduce_scatter(call, ints, comm, complaint);
    free(ints);
    return right;
}

bool verify_reduce_scatter(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_scatter_by(call, true, comm, complaint);
}

bool verify_reduce_scatter_block(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return reduce_scatter_by(call, false, comm, complaint);
}
