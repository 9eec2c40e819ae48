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

bool verify_is_reduction(collwise_collective kind) { return kind >= COLLWISE_REDUCE; }

collwise_call verify_blank_call(const verify_call *call, MPI_Comm comm) {
    return (collwise_call){.send_count = -1,
                           .send_type = MPI_DATATYPE_NULL,
                           .receive_count = -1,
                           .receive_type = MPI_DATATYPE_NULL,
                           .op = MPI_OP_NULL,
                           .root = call->root,
                           .comm = comm};
}

int verify_differing_size(int ints, unsigned which) {
    switch (which % 4) {
    case 0:
        return ints;
    case 1:
        return 0;
    case 2:
        return ints / 2;
    default:
        return ints / 3 + (ints > 0);
    }
}

static bool applies(const verify_call *call, MPI_Comm comm) {
    collwise_call asked = verify_blank_call(call, comm);
    bool reduces = verify_is_reduction(call->algorithm->kind);
    verify_buffer element = verify_buffer_of_one(call->operand, 1);
    if (reduces) {
        asked.op = verify_operation_make(call->operation);
        asked.receive_type = element.type;
    }
    bool answer = collwise_objection(call->algorithm, &asked) == NULL;
    if (reduces) {
        verify_operation_free(call->operation, &asked.op);
    }
    verify_buffer_free(&element);
    return answer;
}

verify_outcome verify_call_run(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    if (!applies(call, comm)) {
        return VERIFY_NOT_APPLICABLE;
    }
    return definitions[call->algorithm->kind](call, comm, complaint) ? VERIFY_RIGHT : VERIFY_WRONG;
}
