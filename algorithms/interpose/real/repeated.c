/* Calls that repeat the last one of their collective on their communicator, as those of a loop do: nothing is decided
 * again, and where data lies as algorithms see it, they run on the program's buffers at once. */
#include "current.h"
#include "fast_path.h"
#include "internal.h"

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

/* --- Runs --------------------------------------------------------------------------------------------------------- */

static void run_barrier(const interpose_repeatable *last, const collwise_current *now) {
    last->algorithm->barrier(now->private, last->parameters);
}

static void run_bcast(const interpose_repeatable *last, const collwise_current *now) {
    last->algorithm->bcast(last->call.receive, last->bytes, last->call.root, now->private, last->parameters);
}

static void run_gather(const interpose_repeatable *last, const collwise_current *now) {
    const collwise_call *call = &last->call;
    const char *mine = call->send;
    char *all = NULL;
    if (now->rank == call->root) {
        all = call->receive;
        char *own = all + (size_t)now->rank * last->bytes;
        collwise_copy(own, mine, last->bytes);
        mine = own;
    }
    last->algorithm->gather(mine, all, last->bytes, call->root, now->private, last->parameters);
}

static void run_scatter(const interpose_repeatable *last, const collwise_current *now) {
    const collwise_call *call = &last->call;
    if (now->rank != call->root) {
        last->algorithm->scatter(NULL, call->receive, last->bytes, call->root, now->private, last->parameters);
        return;
    }
    const char *all = call->send;
    last->algorithm->scatter(all, NULL, last->bytes, call->root, now->private, last->parameters);
    collwise_copy(call->receive, all + (size_t)now->rank * last->bytes, last->bytes);
}

static void run_allgather(const interpose_repeatable *last, const collwise_current *now) {
    char *all = last->call.receive;
    collwise_copy(all + (size_t)now->rank * last->bytes, last->call.send, last->bytes);
    last->algorithm->allgather(all, last->bytes, now->private, last->parameters);
}

static void run_alltoall(const interpose_repeatable *last, const collwise_current *now) {
    const char *send = last->call.send;
    char *receive = last->call.receive;
    size_t own = (size_t)now->rank * last->bytes;
    collwise_copy(receive + own, send + own, last->bytes);
    last->algorithm->alltoall(send, receive, last->bytes, now->private, last->parameters);
}

static void run_reduce(const interpose_repeatable *last, const collwise_current *now) {
    const collwise_call *call = &last->call;
    last->algorithm->reduce(call->send, now->rank == call->root ? call->receive : NULL, (size_t)call->receive_count,
                            &last->op, call->root, now->private, last->parameters);
}

static void run_allreduce(const interpose_repeatable *last, const collwise_current *now) {
    const collwise_call *call = &last->call;
    collwise_copy(call->receive, call->send, last->bytes);
    last->algorithm->allreduce(call->receive, (size_t)call->receive_count, &last->op, now->private, last->parameters);
}

/* Runs of collectives that have one here. */
static void (*const runs[COLLWISE_COLLECTIVES])(const interpose_repeatable *last, const collwise_current *now) = {
    [COLLWISE_BARRIER] = run_barrier, [COLLWISE_BCAST] = run_bcast,         [COLLWISE_GATHER] = run_gather,
    [COLLWISE_SCATTER] = run_scatter, [COLLWISE_ALLGATHER] = run_allgather, [COLLWISE_ALLTOALL] = run_alltoall,
    [COLLWISE_REDUCE] = run_reduce,   [COLLWISE_ALLREDUCE] = run_allreduce,
};

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
    last.run = is_direct(&last, state->current.where.rank) ? runs[algorithm->kind] : NULL;
    if (interpose_signatures[algorithm->kind].has_op) {
        last.op = collwise_operation_of(call->op, call->receive_type, call->comm);
    }
    if (last.parameters.count == 0) {
        last.parameters.count = algorithm->default_count;
    }
    state->last[algorithm->kind] = last;
}

int interpose_repeat(const interpose_repeatable *last, interpose_state *state) {
    if (last->run == NULL) {
        return interpose_guarded_run(last->algorithm, &last->call, last->parameters, state);
    }
    state->current.status = MPI_SUCCESS;
    collwise_now = &state->current.where;
    last->run(last, &state->current.where);
    collwise_now = NULL;
    return state->current.status;
}
