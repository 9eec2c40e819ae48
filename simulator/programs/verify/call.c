/* One call of any collective, by the collective's definition. */
#include "verify.h"

static verify_definition *const definitions[COLLWISE_COLLECTIVES] = {
    [COLLWISE_BCAST] = verify_bcast,
    [COLLWISE_GATHER] = verify_gather,
    [COLLWISE_GATHERV] = verify_gatherv,
    [COLLWISE_SCATTER] = verify_scatter,
    [COLLWISE_SCATTERV] = verify_scatterv,
    [COLLWISE_ALLGATHER] = verify_allgather,
    [COLLWISE_ALLGATHERV] = verify_allgatherv,
    [COLLWISE_ALLTOALL] = verify_alltoall,
    [COLLWISE_ALLTOALLV] = verify_alltoallv,
    [COLLWISE_BARRIER] = verify_barrier,
    [COLLWISE_REDUCE] = verify_reduce,
    [COLLWISE_ALLREDUCE] = verify_allreduce,
    [COLLWISE_REDUCE_SCATTER] = verify_reduce_scatter,
    [COLLWISE_REDUCE_SCATTER_BLOCK] = verify_reduce_scatter_block,
    [COLLWISE_SCAN] = verify_scan,
    [COLLWISE_EXSCAN] = verify_exscan,
};

/* The data that one process has, or gets, of a message or block. */
static verify_buffer message_of(const verify_call *call) {
    return verify_buffer_of_one(verify_is_reduction(call->algorithm->kind) ? call->operand : call->kinds[0],
                                call->ints);
}

bool verify_call_applies(const verify_call *call, MPI_Comm comm) {
    collwise_call asked = verify_blank_call(call, comm);
    bool reduces = verify_is_reduction(call->algorithm->kind);
    verify_buffer message = message_of(call);
    asked.send_count = asked.receive_count = message.counts[0];
    asked.send_type = asked.receive_type = message.type;
    asked.send = call->in_place ? MPI_IN_PLACE : NULL;
    if (call->is_absolute) {
        asked.send_type = asked.receive_type = verify_type_at(message.found, message.type);
    }
    if (reduces) {
        asked.op = verify_operation_make(call->operation);
    }
    bool answer = collwise_objection(call->algorithm, &asked) == NULL;
    if (reduces) {
        verify_operation_free(call->operation, &asked.op);
    }
    if (call->is_absolute) {
        MPI_Type_free(&asked.receive_type);
    }
    verify_buffer_free(&message);
    return answer;
}

size_t verify_call_bytes(const verify_call *call) {
    int element_bytes;
    verify_buffer message = message_of(call);
    MPI_Type_size(message.type, &element_bytes);
    size_t bytes = (size_t)message.counts[0] * (size_t)element_bytes;
    verify_buffer_free(&message);
    return bytes;
}

verify_outcome verify_call_run(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    if (!call->is_mpis_own && !verify_call_applies(call, comm)) {
        return VERIFY_NOT_APPLICABLE;
    }
    return definitions[call->algorithm->kind](call, comm, complaint) ? VERIFY_RIGHT : VERIFY_WRONG;
}

verify_outcome verify_some_call(const collwise_algorithm *algorithm, unsigned serial, MPI_Comm comm,
                                char complaint[VERIFY_TEXT]) {
    int procs;
    MPI_Comm_size(comm, &procs);
    bool commutes = (algorithm->needs & COLLWISE_NEEDS_COMMUTATIVE) != 0;
    verify_call call = {.algorithm = algorithm,
                        .serial = serial,
                        .root = (int)(serial % (unsigned)procs),
                        .ints = 500,
                        .kinds = {VERIFY_INT, VERIFY_INT},
                        .operation = commutes ? VERIFY_CIRCLE : VERIFY_COMPOSE,
                        .operand = VERIFY_CONTIGUOUS,
                        .with = {.segment_bytes = 700}};
    return verify_call_run(&call, comm, complaint);
}
