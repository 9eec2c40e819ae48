/* Reads a call's arguments: how long the message is, and whether MPI would accept them. */
#include "fast_path.h"

static int is_root(const collwise_call *call) {
    int rank;
    PMPI_Comm_rank(call->comm, &rank);
    return rank == call->root;
}

/* --- Sizes ------------------------------------------------------------------------------------------------------- */

static int is_named(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

MPI_Count interpose_query_element_bytes(MPI_Datatype type) {
    MPI_Count bytes;
    PMPI_Type_size_x(type, &bytes);
    if (is_named(type)) {
        interpose_store_type(type, bytes);
    }
    return bytes;
}

/* Sets *bytes to the size of `count` elements; returns 0 if the arguments are invalid. */
static int product(int64_t count, MPI_Datatype type, uint64_t *bytes) {
    if (count < 0 || type == MPI_DATATYPE_NULL) {
        return 0;
    }
    MPI_Count each = interpose_element_bytes(type);
    *bytes = (uint64_t)count * (uint64_t)each;
    return each >= 0;
}

/* The same for the elements of all processes together. */
static int sum(const int *counts, int procs, MPI_Datatype type, uint64_t *bytes) {
    int64_t total = 0;
    if (counts == NULL) {
        return 0;
    }
    for (int i = 0; i < procs; i++) {
        if (counts[i] < 0) {
            return 0;
        }
        total += counts[i];
    }
    return product(total, type, bytes);
}

int interpose_message_bytes(collwise_collective kind, const collwise_call *call, int procs, uint64_t *bytes) {
    const interpose_signature *signature = &interpose_signatures[kind];
    *bytes = 0;
    switch (signature->size_from) {
    case INTERPOSE_SIZE_RECEIVE:
        return product(call->receive_count, call->receive_type, bytes);
    case INTERPOSE_SIZE_BLOCK: /* the other buffer may be MPI_IN_PLACE, and its count undefined */
        return is_root(call) == signature->receive.root_only ? product(call->receive_count, call->receive_type, bytes)
                                                             : product(call->send_count, call->send_type, bytes);
    case INTERPOSE_SIZE_SUM:
        return sum(call->receive_counts, procs, call->receive_type, bytes);
    case INTERPOSE_SIZE_MEAN: {
        int is_valid = sum(call->receive_counts, procs, call->receive_type, bytes);
        *bytes /= (uint64_t)procs;
        return is_valid;
    }
    default:
        return 1;
    }
}

/* --- Reductions -------------------------------------------------------------------------------------------------- */

enum { INTEGER = 1, FLOATING = 2, COMPLEX = 4, LOGICAL = 8, BYTE = 16, PAIR = 32 };

static int contains(const MPI_Datatype *types, size_t count, MPI_Datatype type) {
    for (size_t i = 0; i < count; i++) {
        if (types[i] == type) {
            return 1;
        }
    }
    return 0;
}

#define IS_ONE_OF(type, ...)                                                                                           \
    contains((const MPI_Datatype[]){__VA_ARGS__}, sizeof((const MPI_Datatype[]){__VA_ARGS__}) / sizeof(MPI_Datatype),  \
             type)

/* The class that the MPI standard puts a predefined datatype in; 0 for all other datatypes. */
static int class_of(MPI_Datatype type) {
    if (IS_ONE_OF(type, MPI_DOUBLE, MPI_FLOAT, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8)) {
        return FLOATING;
    }
    if (IS_ONE_OF(type, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_SHORT, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR,
                  MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_INT8_T, MPI_INT16_T,
                  MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_AINT, MPI_OFFSET,
                  MPI_COUNT, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8)) {
        return INTEGER;
    }
    if (IS_ONE_OF(type, MPI_C_DOUBLE_COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX,
                  MPI_DOUBLE_COMPLEX)) {
        return COMPLEX;
    }
    if (IS_ONE_OF(type, MPI_C_BOOL, MPI_LOGICAL)) {
        return LOGICAL;
    }
    if (IS_ONE_OF(type, MPI_DOUBLE_INT, MPI_FLOAT_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT,
                  MPI_2REAL, MPI_2DOUBLE_PRECISION, MPI_2INTEGER)) {
        return PAIR;
    }
    return type == MPI_BYTE ? BYTE : 0;
}

/* The classes that a predefined operation applies to; 0 for operations that reductions do not accept, -1 for
 * user-defined ones. */
static int classes_accepted(MPI_Op op) {
    if (op == MPI_SUM || op == MPI_PROD) {
        return INTEGER | FLOATING | COMPLEX;
    }
    if (op == MPI_MAX || op == MPI_MIN) {
        return INTEGER | FLOATING;
    }
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
        return INTEGER | LOGICAL;
    }
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
        return INTEGER | BYTE;
    }
    if (op == MPI_MINLOC || op == MPI_MAXLOC) {
        return PAIR;
    }
    return op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP ? 0 : -1;
}

int interpose_is_predefined(MPI_Op op) { return classes_accepted(op) > 0; }

static int operation_is_valid(MPI_Op op, MPI_Datatype type) {
    if (interpose_is_known_operation(op, type)) {
        return 1;
    }
    int accepted = classes_accepted(op);
    if (accepted == -1) {
        return 1;
    }
    int is_valid = (accepted & class_of(type)) != 0;
    if (is_valid) {
        interpose_store_operation(op, type);
    }
    return is_valid;
}

/* --- Whole calls ------------------------------------------------------------------------------------------------- */

/* The arguments that describe one buffer. */
typedef struct {
    const void *address;
    int count;
    const int *counts, *displacements;
    MPI_Datatype type;
} buffer_arguments;

static int length_is_valid(interpose_length length, const buffer_arguments *given, int procs) {
    uint64_t bytes;
    switch (length) {
    case INTERPOSE_LENGTH_COUNT:
        return product(given->count, given->type, &bytes);
    case INTERPOSE_LENGTH_COUNTS:
        return sum(given->counts, procs, given->type, &bytes);
    case INTERPOSE_LENGTH_DISPLACEMENTS:
        return given->displacements != NULL && sum(given->counts, procs, given->type, &bytes);
    default:
        return 1;
    }
}

/* `is_root` is 1 on every process if the collective has no root. The count and type of a reduction are significant on
 * every process, even where the buffer is not. */
static int buffer_is_valid(const interpose_signature *signature, const interpose_buffer *buffer,
                           const buffer_arguments *given, int is_root, int procs) {
    int is_significant = is_root || !buffer->root_only;
    if (is_significant && given->address == MPI_IN_PLACE) {
        return is_root && buffer->in_place;
    }
    return (!is_significant && !signature->has_op) || length_is_valid(buffer->length, given, procs);
}

/* The bytes of the calling process's block in a valid buffer of it, or of all processes' blocks. */
static uint64_t own_block_bytes(const buffer_arguments *given, int rank) {
    uint64_t bytes = 0;
    product(given->counts != NULL ? given->counts[rank] : given->count, given->type, &bytes);
    return bytes;
}

/* Whether what the process sends to itself has room where it receives it. */
static int own_block_fits(const interpose_signature *signature, const buffer_arguments *send,
                          const buffer_arguments *receive, MPI_Comm comm) {
    int rank;
    if (signature->send.length == INTERPOSE_LENGTH_NONE || send->address == MPI_IN_PLACE ||
        receive->address == MPI_IN_PLACE) {
        return 1;
    }
    PMPI_Comm_rank(comm, &rank);
    return own_block_bytes(send, rank) <= own_block_bytes(receive, rank);
}

int interpose_arguments_are_valid(collwise_collective kind, const collwise_call *call, int procs) {
    const interpose_signature *signature = &interpose_signatures[kind];
    buffer_arguments send = {call->send, call->send_count, call->send_counts, call->send_displacements,
                             call->send_type};
    buffer_arguments receive = {call->receive, call->receive_count, call->receive_counts, call->receive_displacements,
                                call->receive_type};
    if (signature->has_root && (call->root < 0 || call->root >= procs)) {
        return 0;
    }
    if (signature->has_op && !operation_is_valid(call->op, call->receive_type)) {
        return 0;
    }
    int at_root = !signature->has_root || is_root(call);
    return buffer_is_valid(signature, &signature->send, &send, at_root, procs) &&
           buffer_is_valid(signature, &signature->receive, &receive, at_root, procs) &&
           (!at_root || own_block_fits(signature, &send, &receive, call->comm));
}

static int is_own_type(const interpose_signature *signature, const interpose_buffer *buffer, const void *address,
                       MPI_Datatype type, int at_root) {
    if (buffer->length != INTERPOSE_LENGTH_COUNT) {
        return buffer->length == INTERPOSE_LENGTH_NONE;
    }
    int is_read = signature->has_op || ((at_root || !buffer->root_only) && address != MPI_IN_PLACE);
    return !is_read || is_named(type);
}

int interpose_is_repeatable(collwise_collective kind, const collwise_call *call) {
    const interpose_signature *signature = &interpose_signatures[kind];
    int at_root = !signature->has_root || is_root(call);
    return is_own_type(signature, &signature->send, call->send, call->send_type, at_root) &&
           is_own_type(signature, &signature->receive, call->receive, call->receive_type, at_root) &&
           (!signature->has_op || interpose_is_predefined(call->op));
}
