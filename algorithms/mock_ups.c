/* Objections of mock-ups to calls, and MPI's own reductions. */
#include "mock_ups.h"

#include <limits.h>
#include <stdlib.h>

/* --- Objections --------------------------------------------------------------------------------------------------- */

static int has_blocks(collwise_collective kind) {
    return kind == COLLWISE_GATHER || kind == COLLWISE_SCATTER || kind == COLLWISE_ALLGATHER ||
           kind == COLLWISE_ALLTOALL || kind == COLLWISE_REDUCE_SCATTER_BLOCK;
}

/* The memory of a call, of one process's block if there are blocks. Returns 0 if this process does not know it. */
static int memory_of(const collwise_algorithm *algorithm, const collwise_call *call, int procs, size_t *max_bytes,
                     collwise_memory *extra) {
    int at_root = collwise_rank_in(call->comm) == call->root;
    int is_sent = (algorithm->kind == COLLWISE_GATHER && !at_root) || (algorithm->kind == COLLWISE_SCATTER && at_root);
    int count = is_sent ? call->send_count : call->receive_count;
    MPI_Datatype type = is_sent ? call->send_type : call->receive_type;
    if (count < 0 || type == MPI_DATATYPE_NULL) {
        return 0;
    }
    size_t element_bytes = collwise_element_bytes(type), bytes = (size_t)count * element_bytes;
    int reduces = algorithm->kind >= COLLWISE_REDUCE;
    size_t unit = reduces && element_bytes > 0 ? element_bytes : 1;
    *extra = collwise_extra_memory(algorithm, bytes, unit, procs);
    *max_bytes = bytes * (has_blocks(algorithm->kind) ? (size_t)procs : 1) + (size_t)procs * unit;
    if (algorithm->kind == COLLWISE_SCAN) { /* in place, which only some of the processes may be */
        extra->message_bytes += bytes;
    }
    return 1;
}

/* Whether the data of each element lies within its extent, from its start on. MPI libraries are not tested with others:
 * Open MPI 4.1's ring allreduce writes beyond its memory. */
static int is_plain(MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low, extent, true_low, true_high;
    MPI_Type_get_extent(type, &low, &extent);
    collwise_true_bounds(type, &true_low, &true_high, comm);
    return COLLWISE_LIBRARY_REDUCES_GAPS && true_low >= 0 && true_high <= extent;
}

static int keeps_order(const collwise_algorithm *algorithm) {
    return COLLWISE_LIBRARY_SCANS_IN_ORDER || algorithm->kind != COLLWISE_SCAN;
}

/* Whether the data of each element begins and ends where its extent does. In MPICH (4.0) elements are the true extent
 * apart where MPI_Reduce_scatter or its block form has an operation that does not commute: it is wrong for others. */
static int is_filled(MPI_Datatype type, MPI_Comm comm) {
    MPI_Aint low, extent, true_low, true_high;
    MPI_Type_get_extent(type, &low, &extent);
    collwise_true_bounds(type, &true_low, &true_high, comm);
    return true_low == low && true_high == low + extent;
}

static int is_predefined(MPI_Op op) {
    const MPI_Op defined[] = {MPI_SUM,  MPI_PROD, MPI_MAX,  MPI_MIN,  MPI_MAXLOC, MPI_MINLOC,
                              MPI_LAND, MPI_LOR,  MPI_LXOR, MPI_BAND, MPI_BOR,    MPI_BXOR};
    size_t i = 0, count = sizeof defined / sizeof *defined;
    while (i < count && defined[i] != op) {
        i++;
    }
    return i < count;
}

static const char *reduction_objection(const collwise_algorithm *algorithm, const collwise_call *call, int procs) {
    int commutes;
    MPI_Datatype type = call->receive_type;
    MPI_Op_commutative(call->op, &commutes);
    if (!collwise_is_contiguous(type) && !is_plain(type, call->comm)) {
        return "needs elements whose data lies within their extent";
    }
    if (!commutes && !keeps_order(algorithm)) {
        return "needs a commutative operation";
    }
    if (!commutes && algorithm->calls_reduce_scatter && !is_filled(type, call->comm)) {
        return "needs elements without gaps between them";
    }
    /* MPI never passes an operation more elements than the call has. The program's own may rely on that. */
    if (algorithm->pads && call->receive_count > 0 && call->receive_count % procs != 0 && !is_predefined(call->op)) {
        return "needs a multiple of P elements, or a predefined operation";
    }
    return NULL;
}

const char *collwise_mock_up_objection(const collwise_algorithm *algorithm, const collwise_call *call) {
    collwise_memory extra;
    size_t max_bytes;
    int procs = collwise_size_of(call->comm);
    int reduces = algorithm->kind >= COLLWISE_REDUCE && call->receive_type != MPI_DATATYPE_NULL;
    const char *objection = reduces ? reduction_objection(algorithm, call, procs) : NULL;
    if (objection != NULL || !memory_of(algorithm, call, procs, &max_bytes, &extra)) {
        return objection;
    }
    collwise_memory most = collwise_max_memory();
    return max_bytes > INT_MAX                        ? "needs messages of less than 2 GiB in all"
           : extra.message_bytes > most.message_bytes ? "needs a larger message buffer"
           : extra.integer_bytes > most.integer_bytes ? "needs a larger integer buffer"
                                                      : NULL;
}

/* --- MPI's reductions --------------------------------------------------------------------------------------------- */

/* Elements as MPI's reductions take them: where they lie packed if their type has no holes, else in a copy in the
 * type's own layout. */
typedef struct {
    char *packed, *memory;
    void *argument;
    size_t elements;
    const collwise_operation *op;
} layout;

static layout layout_of(const char *packed, size_t elements, const collwise_operation *op) {
    layout made = {.packed = (char *)packed, .argument = (void *)packed, .elements = elements, .op = op};
    if (packed != NULL && elements > 0 && !op->contiguous) {
        char *first;
        made.memory = collwise_make_layout(op, elements, &first);
        made.argument = first;
    }
    return made;
}

static layout operand(const char *packed, size_t elements, const collwise_operation *op) {
    layout made = layout_of(packed, elements, op);
    if (made.memory != NULL) {
        collwise_unpack(packed, made.argument, elements, op->type, op->comm);
    }
    return made;
}

static void release(const layout *made, int is_result) {
    if (made->memory != NULL && is_result) {
        collwise_pack(made->packed, made->argument, made->elements, made->op->type, made->op->comm);
    }
    free(made->memory);
}

void collwise_mpi_reduce(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                         MPI_Comm comm) {
    int at_root = collwise_rank_in(comm) == root, in_place = at_root && data == result;
    layout from = operand(in_place ? NULL : data, elements, op);
    layout to = in_place ? operand(result, elements, op) : layout_of(at_root ? result : NULL, elements, op);
    PMPI_Reduce(in_place ? MPI_IN_PLACE : from.argument, to.argument, (int)elements, op->type, op->op, root, comm);
    release(&from, 0);
    release(&to, 1);
}

void collwise_mpi_allreduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                            MPI_Comm comm) {
    int in_place = data == result;
    layout from = operand(in_place ? NULL : data, elements, op);
    layout to = in_place ? operand(result, elements, op) : layout_of(result, elements, op);
    PMPI_Allreduce(in_place ? MPI_IN_PLACE : from.argument, to.argument, (int)elements, op->type, op->op, comm);
    release(&from, 0);
    release(&to, 1);
}

void collwise_mpi_reduce_scatter(const char *data, char *mine, const int *counts, const collwise_operation *op,
                                 MPI_Comm comm) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm), in_place = data == mine;
    size_t elements = 0;
    for (int i = 0; i < procs; i++) {
        elements += (size_t)counts[i];
    }
    layout from = operand(in_place ? NULL : data, elements, op);
    layout to = in_place ? operand(mine, elements, op) : layout_of(mine, (size_t)counts[rank], op);
    PMPI_Reduce_scatter(in_place ? MPI_IN_PLACE : from.argument, to.argument, counts, op->type, op->op, comm);
    to.elements = (size_t)counts[rank];
    release(&from, 0);
    release(&to, 1);
}

void collwise_mpi_reduce_scatter_block(const char *data, char *mine, size_t block_elements,
                                       const collwise_operation *op, MPI_Comm comm) {
    layout from = operand(data, block_elements * (size_t)collwise_size_of(comm), op);
    layout to = layout_of(mine, block_elements, op);
    PMPI_Reduce_scatter_block(from.argument, to.argument, (int)block_elements, op->type, op->op, comm);
    release(&from, 0);
    release(&to, 1);
}

void collwise_mpi_exscan(const char *data, char *result, size_t elements, const collwise_operation *op, MPI_Comm comm) {
    layout from = operand(data, elements, op), to = layout_of(result, elements, op);
    PMPI_Exscan(from.argument, to.argument, (int)elements, op->type, op->op, comm);
    release(&from, 0);
    release(&to, collwise_rank_in(comm) > 0);
}

collwise_operation collwise_bitwise_or(MPI_Comm comm) { return collwise_operation_of(MPI_BOR, MPI_BYTE, comm); }
