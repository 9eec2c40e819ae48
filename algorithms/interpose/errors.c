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

/* The call of this thread that runs an algorithm of ours, and its first error. */
typedef struct {
    MPI_Comm comm;
    int status;
} guarded_call;

static _Thread_local __attribute__((tls_model("initial-exec"))) guarded_call *current;

int interpose_is_inside(void) { return current != NULL; }

/* The handler of private communicators, which those made of them inherit. */
static void pass_on(MPI_Comm *private, int *code, ...) {
    if (current == NULL) {
        PMPI_Abort(*private, *code);
        return;
    }
    if (current->status == MPI_SUCCESS) {
        current->status = *code;
    }
    PMPI_Comm_call_errhandler(current->comm, *code);
}

/* A collective call where the private communicator does not exist yet, as the algorithm itself would be. */
static void guard(MPI_Comm comm) {
    MPI_Errhandler handler;
    if (PMPI_Comm_create_errhandler(pass_on, &handler) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(collwise_private(comm), handler);
        PMPI_Errhandler_free(&handler);
    }
}

int interpose_guarded_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                          interpose_state *state) {
    guarded_call now = {call->comm, MPI_SUCCESS};
    if (!state->is_guarded) {
        state->is_guarded = 1;
        guard(call->comm);
    }
    current = &now;
    collwise_run(algorithm, call, with);
    current = NULL;
    return now.status;
}

#endif
