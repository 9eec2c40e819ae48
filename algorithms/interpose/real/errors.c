/* Runs our algorithms so that their errors are the program's: those raised on the private communicator, or on one made
 * of it, go to the error handler of the communicator that the program called with, and the call returns their code. */
#include "current.h"
#include "fast_path.h"

int interpose_is_inside(void) { return collwise_now != NULL; }

/* The handler of private communicators, which those made of them inherit. */
static void pass_on(MPI_Comm *private, int *code, ...) {
    interpose_current_call *now = (interpose_current_call *)collwise_now;
    if (now == NULL) {
        PMPI_Abort(*private, *code);
        return;
    }
    if (now->status == MPI_SUCCESS) {
        now->status = *code;
    }
    /* A handler may leave the call, and what it calls is the program's own. */
    collwise_now = NULL;
    PMPI_Comm_call_errhandler(now->where.comm, *code);
    collwise_now = &now->where;
}

/* A collective call where the private communicator does not exist yet, as the algorithm itself would be. */
static void guard(interpose_state *state, MPI_Comm comm) {
    MPI_Errhandler handler;
    collwise_current *where = &state->current.where;
    *where = (collwise_current){.comm = comm, .private = collwise_private(comm), .procs = state->procs};
    PMPI_Comm_rank(comm, &where->rank);
    if (PMPI_Comm_create_errhandler(pass_on, &handler) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(where->private, handler);
        PMPI_Errhandler_free(&handler);
    }
    state->is_guarded = 1;
}

int interpose_guarded_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                          interpose_state *state) {
    if (!state->is_guarded) {
        guard(state, call->comm);
    }
    state->current.status = MPI_SUCCESS;
    collwise_now = &state->current.where;
    collwise_run(algorithm, call, with);
    collwise_now = NULL;
    return state->current.status;
}
