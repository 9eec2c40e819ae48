/* Calls that repeat the last one of their collective on their communicator, as those of a loop do: nothing is decided
 * again, and where data lies as algorithms see it, they run on the program's buffers at once. */
#include "fast_path.h"
#include "internal.h"

#ifdef SMPI_SHARED_MALLOC

void interpose_store(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                     interpose_state *state) {
    (void)algorithm;
    (void)call;
    (void)with;
    (void)state;
}

int interpose_repeat(const interpose_repeatable *last, const collwise_call *call, interpose_state *state) {
    return interpose_guarded_run(last->algorithm, call, last->parameters, state);
}

#else

/* --- What can run directly ---------------------------------------------------------------------------------------- */

/* Whether `count` elements are this many bytes one after another. */
static int are_bytes(int count, MPI_Datatype type, size_t bytes) {
    MPI_Count each = interpose_element_bytes(type);
    return each >= 0 && (size_t)count * (size_t)each == bytes && collwise_is_contiguous(type);
}

static int sends_bytes(const interpose_repeatable *last) {
    return last->call.send != MPI_IN_PLACE && are_bytes(last->call.send_count, last->call.send_type, last->bytes);
}

static int receives_bytes(const interpose_repeatable *last) {
    return last->call.receive != MPI_IN_PLACE &&
           are_bytes(last->call.receive_count, last->call.receive_type, last->bytes);
}

/* Looks only at arguments that are significant on this process. */
static int is_direct(const interpose_repeatable *last, int rank) {
    int at_root = rank == last->call.root;
    if (last->algorithm->kind == COLLWISE_BARRIER) {
        return 1;
    }
    if (last->bytes == 0 || collwise_has_mock_up_form(last->algorithm)) {
        return 0;
    }
    switch (last->algorithm->kind) {
    case COLLWISE_BCAST:
        return receives_bytes(last);
    case COLLWISE_REDUCE:
    case COLLWISE_ALLREDUCE:
        return last->call.send != MPI_IN_PLACE && receives_bytes(last);
    case COLLWISE_GATHER:
        return sends_bytes(last) && (!at_root || receives_bytes(last));
    case COLLWISE_SCATTER:
        return receives_bytes(last) && (!at_root || sends_bytes(last));
    case COLLWISE_ALLGATHER:
    case COLLWISE_ALLTOALL:
        return sends_bytes(last) && receives_bytes(last);
    default:
        return 0;
    }
}

void interpose_store(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                     interpose_state *state) {
    uint64_t bytes;
    if (!interpose_is_repeatable(algorithm->kind, call) ||
        !interpose_message_bytes(algorithm->kind, call, state->procs, &bytes)) {
        return;
    }
    interpose_repeatable last = {.algorithm = algorithm, .parameters = with, .call = *call, .bytes = (size_t)bytes};
    last.is_direct = is_direct(&last, state->rank);
    if (interpose_signatures[algorithm->kind].has_op) {
        last.op = collwise_operation_of(call->op, call->receive_type, call->comm);
    }
    if (last.parameters.count == 0) {
        last.parameters.count = algorithm->default_count;
    }
    state->last[algorithm->kind] = last;
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

static void gather(const interpose_repeatable *last, const collwise_call *call, const interpose_state *state) {
    const char *mine = call->send;
    char *all = NULL;
    if (state->rank == call->root) {
        char *own = (char *)call->receive + (size_t)state->rank * last->bytes;
        collwise_copy(own, mine, last->bytes);
        mine = own;
        all = call->receive;
    }
    last->algorithm->gather(mine, all, last->bytes, call->root, state->private, last->parameters);
}

static void scatter(const interpose_repeatable *last, const collwise_call *call, const interpose_state *state) {
    if (state->rank != call->root) {
        last->algorithm->scatter(NULL, call->receive, last->bytes, call->root, state->private, last->parameters);
        return;
    }
    const char *all = call->send;
    last->algorithm->scatter(all, NULL, last->bytes, call->root, state->private, last->parameters);
    collwise_copy(call->receive, all + (size_t)state->rank * last->bytes, last->bytes);
}

static void run_direct(const interpose_repeatable *last, const collwise_call *call, const interpose_state *state) {
    const collwise_algorithm *algorithm = last->algorithm;
    MPI_Comm private = state->private;
    char *receive = call->receive;
    const char *send = call->send;
    size_t own = (size_t)state->rank * last->bytes, count = (size_t)call->receive_count;
    switch (algorithm->kind) {
    case COLLWISE_BCAST:
        algorithm->bcast(receive, last->bytes, call->root, private, last->parameters);
        break;
    case COLLWISE_GATHER:
        gather(last, call, state);
        break;
    case COLLWISE_SCATTER:
        scatter(last, call, state);
        break;
    case COLLWISE_ALLGATHER:
        collwise_copy(receive + own, send, last->bytes);
        algorithm->allgather(receive, last->bytes, private, last->parameters);
        break;
    case COLLWISE_ALLTOALL:
        collwise_copy(receive + own, send + own, last->bytes);
        algorithm->alltoall(send, receive, last->bytes, private, last->parameters);
        break;
    case COLLWISE_REDUCE:
        algorithm->reduce(send, state->rank == call->root ? receive : NULL, count, &last->op, call->root, private,
                          last->parameters);
        break;
    case COLLWISE_ALLREDUCE:
        collwise_copy(receive, send, last->bytes);
        algorithm->allreduce(receive, count, &last->op, private, last->parameters);
        break;
    default:
        algorithm->barrier(private, last->parameters);
    }
}

int interpose_repeat(const interpose_repeatable *last, const collwise_call *call, interpose_state *state) {
    if (!last->is_direct) {
        return interpose_guarded_run(last->algorithm, call, last->parameters, state);
    }
    interpose_current_call now = {call->comm, state->private, state->rank, state->procs, MPI_SUCCESS};
    interpose_current = &now;
    run_direct(last, call, state);
    interpose_current = NULL;
    return now.status;
}

#endif
