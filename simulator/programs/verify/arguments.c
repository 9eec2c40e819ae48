/* The arguments of calls, and how a call is made. */
#include "verify.h"

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

void verify_make(const verify_call *call, const collwise_call *made) {
    if (call->conductor != NULL) {
        call->conductor->make(call, made);
    } else {
        collwise_run(call->algorithm, made, call->with);
    }
}
