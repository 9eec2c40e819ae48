#include "workload.h"

#include <stdlib.h>
#include <string.h>

collwise_collective program_workload_kind(const char *collective) {
    collwise_collective kind = 0;
    while (kind < COLLWISE_COLLECTIVES && strcmp(collwise_collective_names[kind], collective) != 0) {
        kind++;
    }
    return kind;
}

int program_workload_is_rooted(collwise_collective kind) {
    return kind == COLLWISE_BCAST || kind == COLLWISE_GATHER || kind == COLLWISE_GATHERV || kind == COLLWISE_SCATTER ||
           kind == COLLWISE_SCATTERV || kind == COLLWISE_REDUCE;
}

int program_workload_reduces(collwise_collective kind) { return kind >= COLLWISE_REDUCE; }

/* The number of messages that each buffer holds: none, one, or one for each process. */
typedef struct {
    int send, receive;
} shares;

static shares shares_of(collwise_collective kind, int procs, int is_root) {
    switch (kind) {
    case COLLWISE_BARRIER:
        return (shares){0, 0};
    case COLLWISE_BCAST:
        return (shares){0, 1};
    case COLLWISE_GATHER:
    case COLLWISE_GATHERV:
        return (shares){1, is_root ? procs : 0};
    case COLLWISE_SCATTER:
    case COLLWISE_SCATTERV:
        return (shares){is_root ? procs : 0, 1};
    case COLLWISE_ALLGATHER:
    case COLLWISE_ALLGATHERV:
        return (shares){1, procs};
    case COLLWISE_ALLTOALL:
    case COLLWISE_ALLTOALLV:
        return (shares){procs, procs};
    case COLLWISE_REDUCE_SCATTER_BLOCK:
        return (shares){procs, 1};
    default:
        return (shares){1, 1};
    }
}

/* Counts and displacements for the collectives that take one for each process. A reduce_scatter splits the message. */
static void fill_counts(workload *made, int procs, int count) {
    int splits = made->kind == COLLWISE_REDUCE_SCATTER;
    for (int rank = 0, next = 0; rank < procs; rank++) {
        made->counts[rank] = splits ? count / procs + (rank < count % procs) : count;
        made->displacements[rank] = next;
        next += made->counts[rank];
    }
    made->call.send_counts = made->call.receive_counts = made->counts;
    made->call.send_displacements = made->call.receive_displacements = made->displacements;
}

static int takes_counts(collwise_collective kind) {
    return kind == COLLWISE_GATHERV || kind == COLLWISE_SCATTERV || kind == COLLWISE_ALLGATHERV ||
           kind == COLLWISE_ALLTOALLV || kind == COLLWISE_REDUCE_SCATTER;
}

int program_workload_make(workload *made, collwise_collective kind, size_t message_bytes, int root, MPI_Comm comm,
                          workload_memory memory) {
    int procs, rank, element_bytes;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    MPI_Datatype type = MPI_BYTE;
    if (program_workload_reduces(kind)) {
        type = message_bytes % sizeof(double) == 0 ? MPI_DOUBLE : MPI_UNSIGNED_CHAR;
    }
    MPI_Type_size(type, &element_bytes);
    int count = (int)(message_bytes / (size_t)element_bytes);
    shares hold = shares_of(kind, procs, rank == root);
    *made = (workload){.kind = kind,
                       .counts = calloc((size_t)procs, sizeof(int)),
                       .displacements = calloc((size_t)procs, sizeof(int)),
                       .memory = memory};
    made->call = (collwise_call){.send = memory.allocate((size_t)hold.send * message_bytes + 1),
                                 .send_count = count,
                                 .send_type = type,
                                 .receive = memory.allocate((size_t)hold.receive * message_bytes + 1),
                                 .receive_count = count,
                                 .receive_type = type,
                                 .op = MPI_SUM,
                                 .root = root,
                                 .comm = comm};
    if (made->counts == NULL || made->displacements == NULL || made->call.send == NULL || made->call.receive == NULL) {
        program_workload_free(made);
        return 0;
    }
    if (takes_counts(kind)) {
        fill_counts(made, procs, count);
    }
    return 1;
}

void program_workload_free(workload *made) {
    if (made->call.send != NULL) {
        made->memory.release((void *)made->call.send);
    }
    if (made->call.receive != NULL) {
        made->memory.release(made->call.receive);
    }
    free(made->counts);
    free(made->displacements);
    *made = (workload){.kind = made->kind};
}

/* `MPI_NAME` or `MPI_INAME`. */
#define CALL(name, non_blocking, ...)                                                                                  \
    (request == NULL ? MPI_##name(__VA_ARGS__) : MPI_##non_blocking(__VA_ARGS__, request))

void program_workload_call_mpi(collwise_collective kind, const collwise_call *c, MPI_Request *request) {
    switch (kind) {
    case COLLWISE_BCAST:
        CALL(Bcast, Ibcast, c->receive, c->receive_count, c->receive_type, c->root, c->comm);
        break;
    case COLLWISE_GATHER:
        CALL(Gather, Igather, c->send, c->send_count, c->send_type, c->receive, c->receive_count, c->receive_type,
             c->root, c->comm);
        break;
    case COLLWISE_GATHERV:
        CALL(Gatherv, Igatherv, c->send, c->send_count, c->send_type, c->receive, c->receive_counts,
             c->receive_displacements, c->receive_type, c->root, c->comm);
        break;
    case COLLWISE_SCATTER:
        CALL(Scatter, Iscatter, c->send, c->send_count, c->send_type, c->receive, c->receive_count, c->receive_type,
             c->root, c->comm);
        break;
    case COLLWISE_SCATTERV:
        CALL(Scatterv, Iscatterv, c->send, c->send_counts, c->send_displacements, c->send_type, c->receive,
             c->receive_count, c->receive_type, c->root, c->comm);
        break;
    case COLLWISE_ALLGATHER:
        CALL(Allgather, Iallgather, c->send, c->send_count, c->send_type, c->receive, c->receive_count, c->receive_type,
             c->comm);
        break;
    case COLLWISE_ALLGATHERV:
        CALL(Allgatherv, Iallgatherv, c->send, c->send_count, c->send_type, c->receive, c->receive_counts,
             c->receive_displacements, c->receive_type, c->comm);
        break;
    case COLLWISE_ALLTOALL:
        CALL(Alltoall, Ialltoall, c->send, c->send_count, c->send_type, c->receive, c->receive_count, c->receive_type,
             c->comm);
        break;
    case COLLWISE_ALLTOALLV:
        CALL(Alltoallv, Ialltoallv, c->send, c->send_counts, c->send_displacements, c->send_type, c->receive,
             c->receive_counts, c->receive_displacements, c->receive_type, c->comm);
        break;
    case COLLWISE_BARRIER:
        CALL(Barrier, Ibarrier, c->comm);
        break;
    case COLLWISE_REDUCE:
        CALL(Reduce, Ireduce, c->send, c->receive, c->receive_count, c->receive_type, c->op, c->root, c->comm);
        break;
    case COLLWISE_ALLREDUCE:
        CALL(Allreduce, Iallreduce, c->send, c->receive, c->receive_count, c->receive_type, c->op, c->comm);
        break;
    case COLLWISE_REDUCE_SCATTER:
        CALL(Reduce_scatter, Ireduce_scatter, c->send, c->receive, c->receive_counts, c->receive_type, c->op, c->comm);
        break;
    case COLLWISE_REDUCE_SCATTER_BLOCK:
        CALL(Reduce_scatter_block, Ireduce_scatter_block, c->send, c->receive, c->receive_count, c->receive_type, c->op,
             c->comm);
        break;
    case COLLWISE_SCAN:
        CALL(Scan, Iscan, c->send, c->receive, c->receive_count, c->receive_type, c->op, c->comm);
        break;
    case COLLWISE_EXSCAN:
        CALL(Exscan, Iexscan, c->send, c->receive, c->receive_count, c->receive_type, c->op, c->comm);
        break;
    case COLLWISE_COLLECTIVES:
        break;
    }
}
