/* What can be told from a call's arguments: how long its message is, and whether MPI would accept them. */
#include "interpose.h"

static int is_root(const collwise_call *call) {
    int rank;
    PMPI_Comm_rank(call->comm, &rank);
    return rank == call->root;
}

/* --- Sizes ------------------------------------------------------------------------------------------------------- */

#ifdef SMPI_SHARED_MALLOC

MPI_Count interpose_ask_element_bytes(MPI_Datatype type) {
    int bytes;
    PMPI_Type_size(type, &bytes);
    return bytes;
}

#else

_Thread_local interpose_known_type interpose_last_type;

static int is_named(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

MPI_Count interpose_ask_element_bytes(MPI_Datatype type) {
    MPI_Count bytes;
    PMPI_Type_size_x(type, &bytes);
    if (is_named(type)) {
        interpose_last_type = (interpose_known_type){1, type, bytes};
    }
    return bytes;
}

#endif

/* The bytes of `count` elements; 0 as the result if MPI must judge. */
static int product(int64_t count, MPI_Datatype type, uint64_t *bytes) {
    if (count < 0 || type == MPI_DATATYPE_NULL) {
        return 0;
    }
    MPI_Count each = interpose_element_bytes(type);
    *bytes = (uint64_t)count * (uint64_t)each;
    return each >= 0;
}

static int total_of(const int *counts, int procs, int64_t *total) {
    *total = 0;
    for (int i = 0; counts != NULL && i < procs; i++) {
        if (counts[i] < 0) {
            return 0;
        }
        *total += counts[i];
    }
    return counts != NULL;
}

static int sum(const int *counts, int procs, MPI_Datatype type, uint64_t *bytes) {
    int64_t total;
    return total_of(counts, procs, &total) && product(total, type, bytes);
}

int interpose_message_bytes(collwise_collective kind, const collwise_call *call, int procs, uint64_t *bytes) {
    *bytes = 0;
    switch (kind) {
    case COLLWISE_GATHER: /* the root's own block may be in place */
        return is_root(call) ? product(call->receive_count, call->receive_type, bytes)
                             : product(call->send_count, call->send_type, bytes);
    case COLLWISE_SCATTER:
        return is_root(call) ? product(call->send_count, call->send_type, bytes)
                             : product(call->receive_count, call->receive_type, bytes);
    case COLLWISE_ALLGATHERV: {
        int right = sum(call->receive_counts, procs, call->receive_type, bytes);
        *bytes /= (uint64_t)procs;
        return right;
    }
    case COLLWISE_REDUCE_SCATTER:
        return sum(call->receive_counts, procs, call->receive_type, bytes);
    case COLLWISE_GATHERV:
    case COLLWISE_SCATTERV:
    case COLLWISE_ALLTOALLV:
    case COLLWISE_BARRIER:
        return 1;
    default:
        return product(call->receive_count, call->receive_type, bytes);
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

/* The MPI standard's class of a predefined datatype; 0 for all others. */
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

/* The classes that a predefined operation takes; 0 for those that reductions do not have, -1 for users' own. */
static int classes_taken(MPI_Op op) {
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

static int operation_holds(MPI_Op op, MPI_Datatype type) {
    int taken = classes_taken(op);
    return taken == -1 || (taken & class_of(type)) != 0;
}

/* --- Whole calls ------------------------------------------------------------------------------------------------- */

static int holds(int count, MPI_Datatype type) {
    uint64_t bytes;
    return product(count, type, &bytes);
}

static int all_hold(const int *counts, const int *displacements, int procs, MPI_Datatype type) {
    uint64_t bytes;
    return displacements != NULL && sum(counts, procs, type, &bytes);
}

static int send_holds(const collwise_call *call) { return holds(call->send_count, call->send_type); }
static int receive_holds(const collwise_call *call) { return holds(call->receive_count, call->receive_type); }

static int all_sent_hold(const collwise_call *call, int procs) {
    return all_hold(call->send_counts, call->send_displacements, procs, call->send_type);
}

static int all_received_hold(const collwise_call *call, int procs) {
    return all_hold(call->receive_counts, call->receive_displacements, procs, call->receive_type);
}

static int root_holds(const collwise_call *call, int procs) { return call->root >= 0 && call->root < procs; }

/* Gathers: the root's own block, and everybody's at the root. In place only at the root. */
static int gather_holds(const collwise_call *call, int procs, int is_vector) {
    if (!root_holds(call, procs) || !is_root(call)) {
        return root_holds(call, procs) && call->send != MPI_IN_PLACE && send_holds(call);
    }
    return (call->send == MPI_IN_PLACE || send_holds(call)) && call->receive != MPI_IN_PLACE &&
           (is_vector ? all_received_hold(call, procs) : receive_holds(call));
}

static int scatter_holds(const collwise_call *call, int procs, int is_vector) {
    if (!root_holds(call, procs) || !is_root(call)) {
        return root_holds(call, procs) && call->receive != MPI_IN_PLACE && receive_holds(call);
    }
    return (call->receive == MPI_IN_PLACE || receive_holds(call)) && call->send != MPI_IN_PLACE &&
           (is_vector ? all_sent_hold(call, procs) : send_holds(call));
}

static int reduce_holds(const collwise_call *call, int procs) {
    return root_holds(call, procs) && receive_holds(call) && operation_holds(call->op, call->receive_type) &&
           (call->send != MPI_IN_PLACE || is_root(call));
}

int interpose_arguments_hold(collwise_collective kind, const collwise_call *call, int procs) {
    int in_place = call->send == MPI_IN_PLACE;
    switch (kind) {
    case COLLWISE_BARRIER:
        return 1;
    case COLLWISE_BCAST:
        return root_holds(call, procs) && call->receive != MPI_IN_PLACE && receive_holds(call);
    case COLLWISE_GATHER:
        return gather_holds(call, procs, 0);
    case COLLWISE_GATHERV:
        return gather_holds(call, procs, 1);
    case COLLWISE_SCATTER:
        return scatter_holds(call, procs, 0);
    case COLLWISE_SCATTERV:
        return scatter_holds(call, procs, 1);
    case COLLWISE_ALLGATHER:
    case COLLWISE_ALLTOALL:
        return (in_place || send_holds(call)) && call->receive != MPI_IN_PLACE && receive_holds(call);
    case COLLWISE_ALLGATHERV:
        return (in_place || send_holds(call)) && call->receive != MPI_IN_PLACE && all_received_hold(call, procs);
    case COLLWISE_ALLTOALLV:
        return (in_place || all_sent_hold(call, procs)) && call->receive != MPI_IN_PLACE &&
               all_received_hold(call, procs);
    case COLLWISE_REDUCE:
        return reduce_holds(call, procs);
    case COLLWISE_REDUCE_SCATTER: {
        uint64_t bytes;
        return call->receive != MPI_IN_PLACE && sum(call->receive_counts, procs, call->receive_type, &bytes) &&
               operation_holds(call->op, call->receive_type);
    }
    default:
        return call->receive != MPI_IN_PLACE && receive_holds(call) && operation_holds(call->op, call->receive_type);
    }
}
