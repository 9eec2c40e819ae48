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

INTERPOSE_THREAD_LOCAL interpose_current_call *interpose_current;

int interpose_is_inside(void) { return interpose_current != NULL; }

/* The handler of private communicators, which those made of them inherit. */
static void pass_on(MPI_Comm *private, int *code, ...) {
    if (interpose_current == NULL) {
        PMPI_Abort(*private, *code);
        return;
    }
    if (interpose_current->status == MPI_SUCCESS) {
        interpose_current->status = *code;
    }
    PMPI_Comm_call_errhandler(interpose_current->comm, *code);
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

/* A buffer at MPI_BOTTOM, which MPICH's MPI_Pack refuses, as one at the address of its first element's data, and its
 * type counted from there. Types of predefined elements, and others that the caller does not own, stay. */
typedef struct {
    void *address;
    MPI_Datatype type;
    int is_made;
} buffer_view;

static buffer_view view_of(const void *address, MPI_Datatype type) {
    MPI_Aint low, extent, back;
    MPI_Datatype made;
    if (address != MPI_BOTTOM || type == MPI_DATATYPE_NULL ||
        PMPI_Type_get_true_extent(type, &low, &extent) != MPI_SUCCESS || low == 0) {
        return (buffer_view){(void *)address, type, 0};
    }
    back = -low;
    PMPI_Type_create_hindexed_block(1, 1, &back, type, &made);
    PMPI_Type_commit(&made);
    return (buffer_view){(void *)low, made, 1};
}

static void free_view(buffer_view *view) {
    if (view->is_made) {
        PMPI_Type_free(&view->type);
    }
}

static void run_from_bottom(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    const interpose_signature *signature = &interpose_signatures[algorithm->kind];
    int has_send = signature->send.length != INTERPOSE_LENGTH_NONE;
    int has_receive = signature->receive.length != INTERPOSE_LENGTH_NONE;
    buffer_view send = has_send ? view_of(call->send, call->send_type) : (buffer_view){0};
    buffer_view receive = has_receive ? view_of(call->receive, call->receive_type) : (buffer_view){0};
    collwise_call moved = *call;
    if (has_send) {
        moved.send = send.address;
        moved.send_type = send.type;
    }
    if (has_receive) {
        moved.receive = receive.address;
        moved.receive_type = receive.type;
    }
    collwise_run(algorithm, &moved, with);
    free_view(&send);
    free_view(&receive);
}

int interpose_guarded_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                          interpose_state *state) {
    if (!state->is_guarded) {
        guard(state, call->comm);
    }
    state->current.status = MPI_SUCCESS;
    interpose_current = &state->current;
    const interpose_signature *signature = &interpose_signatures[algorithm->kind];
    int may_be_bottom = (call->send == MPI_BOTTOM && signature->send.length != INTERPOSE_LENGTH_NONE) ||
                        (call->receive == MPI_BOTTOM && signature->receive.length != INTERPOSE_LENGTH_NONE);
    if (may_be_bottom && !signature->has_op) {
        run_from_bottom(algorithm, call, with);
    } else {
        collwise_run(algorithm, call, with);
    }
    interpose_current = NULL;
    return state->current.status;
}

#endif
