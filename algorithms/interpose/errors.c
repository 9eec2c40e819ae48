/* Runs our algorithms so that their errors are the program's: those raised on the private communicator, or on one made
 * of it, go to the error handler of the communicator that the program called with, and the call returns their code. */
#include "fast_path.h"

#ifdef SMPI_SHARED_MALLOC

/* Simulated processes may share a thread; in simulation errors end the run. */
int interpose_is_inside(void) { return 0; }

int interpose_guarded_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                          interpose_state *state) {
    (void)state;
    collwise_run(algorithm, call, with);
    return MPI_SUCCESS;
}

#else

int interpose_is_inside(void) { return interpose_stored->current != NULL; }

/* The handler of private communicators, which those made of them inherit. */
static void pass_on(MPI_Comm *private, int *code, ...) {
    interpose_current_call *now = interpose_stored->current;
    if (now == NULL) {
        PMPI_Abort(*private, *code);
        return;
    }
    if (now->status == MPI_SUCCESS) {
        now->status = *code;
    }
    PMPI_Comm_call_errhandler(now->comm, *code);
}

/* A collective call where the private communicator does not exist yet, as the algorithm itself would be. */
static void guard(interpose_state *state, MPI_Comm comm) {
    MPI_Errhandler handler;
    state->current = (interpose_current_call){.comm = comm, .private = collwise_private(comm), .procs = state->procs};
    PMPI_Comm_rank(comm, &state->current.rank);
    if (PMPI_Comm_create_errhandler(pass_on, &handler) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(state->current.private, handler);
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
    interpose_thread *own = interpose_own_thread();
    own->current = &state->current;
    collwise_run(algorithm, call, with);
    own->current = NULL;
    return state->current.status;
}

#endif
