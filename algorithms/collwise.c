/* The functions of collwise.h: user buffers become bytes, then the algorithm runs on the private communicator. */
#include "mock_ups.h"
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

const char *collwise_objection(const collwise_algorithm *algorithm, const collwise_call *call) {
    int commutes = 1;
    if ((algorithm->needs & COLLWISE_NEEDS_COMMUTATIVE) != 0) {
        MPI_Op_commutative(call->op, &commutes);
    }
    if (!commutes) {
        return "needs a commutative operation";
    }
    int procs = collwise_size_of(call->comm);
    const char *objection = collwise_procs_objection(algorithm, procs);
    return objection == NULL && algorithm->guideline != NULL ? collwise_mock_up_objection(algorithm, call) : objection;
}

static int count_of(const collwise_algorithm *algorithm, collwise_parameters with) {
    return with.count == 0 ? algorithm->default_count : with.count;
}

static int has_count(const collwise_algorithm *algorithm, const char *name) {
    return algorithm->count_parameter != NULL && strcmp(algorithm->count_parameter, name) == 0;
}

/* Roots and process 0 are the roots of trees; of several leaders, one is in each place on a node. */
void collwise_prepare(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    MPI_Comm private = collwise_private(call->comm);
    if (algorithm->guideline != NULL) {
        collwise_make_buffers(private);
    }
    if (!algorithm->by_node) {
        return;
    }
    collwise_levels levels = collwise_levels_of(0, private);
    collwise_levels_of(call->root, private);
    const collwise_nodes *nodes = levels.nodes;
    int leaders = has_count(algorithm, "leaders") ? count_of(algorithm, with) : 0;
    for (int place = 0; place < leaders && place < collwise_node_size(nodes, 0); place++) {
        collwise_levels_of(nodes->ranks[place], private);
    }
    if (has_count(algorithm, "within") && with.within == COLLWISE_WITHIN_SOCKETS) {
        collwise_socket_levels_of(0, private);
        collwise_socket_levels_of(call->root, private);
        collwise_sockets_of_all(private);
    } else if (has_count(algorithm, "within") &&
               (with.within == COLLWISE_WITHIN_SHARED || with.within == COLLWISE_WITHIN_ONE_SIDED)) {
        collwise_window_of(&levels, (collwise_within)with.within, private);
    }
}

void collwise_barrier(MPI_Comm comm) { collwise_barrier_bruck(collwise_private(comm), (collwise_parameters){0}); }

static void run_bcast(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int rank = collwise_rank_in(call->comm);
    size_t count = (size_t)call->receive_count;
    collwise_bytes message = collwise_bytes_of(call->receive, count, call->receive_type, call->comm);
    if (collwise_size_of(call->comm) > 1 && message.bytes > 0) {
        if (rank == call->root) {
            collwise_bytes_pack(&message, call->receive, count, call->receive_type, call->comm);
        }
        algorithm->bcast(message.data, message.bytes, call->root, collwise_private(call->comm), with);
        if (rank != call->root) {
            collwise_bytes_unpack(&message, call->receive, count, call->receive_type, call->comm);
        }
    }
    collwise_bytes_release(&message);
}

/* This process's own block of `receive`: from `send`, or from where it lies already. */
static void put_own_block(const collwise_blocks *receive, const collwise_call *call, int rank) {
    if (call->send == MPI_IN_PLACE) {
        collwise_blocks_pack(receive, rank);
    } else {
        collwise_pack(receive->data + receive->offsets[rank], call->send, (size_t)call->send_count, call->send_type,
                      call->comm);
    }
}

static collwise_blocks receive_blocks(const collwise_call *call) {
    return collwise_blocks_of(call->receive, call->receive_count, call->receive_counts, call->receive_displacements,
                              call->receive_type, call->comm);
}

static collwise_blocks send_blocks(const collwise_call *call) {
    return collwise_blocks_of(call->send, call->send_count, call->send_counts, call->send_displacements,
                              call->send_type, call->comm);
}

static void run_gather(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int rank = collwise_rank_in(call->comm), procs = collwise_size_of(call->comm);
    if (rank != call->root) {
        collwise_bytes mine = collwise_bytes_of(call->send, (size_t)call->send_count, call->send_type, call->comm);
        collwise_bytes_pack(&mine, call->send, (size_t)call->send_count, call->send_type, call->comm);
        if (mine.bytes > 0) {
            algorithm->gather(mine.data, NULL, mine.bytes, call->root, collwise_private(call->comm), with);
        }
        collwise_bytes_release(&mine);
        return;
    }
    collwise_blocks all = receive_blocks(call);
    size_t block_bytes = all.offsets[1];
    put_own_block(&all, call, rank);
    if (procs > 1 && block_bytes > 0) {
        algorithm->gather(all.data + all.offsets[rank], all.data, block_bytes, call->root, collwise_private(call->comm),
                          with);
    }
    collwise_blocks_unpack_all(&all);
    collwise_blocks_release(&all);
}

/* Runs the algorithm even if there is nothing to send, which only the root knows. */
static void run_gatherv(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int rank = collwise_rank_in(call->comm), procs = collwise_size_of(call->comm);
    if (rank != call->root) {
        collwise_bytes mine = collwise_bytes_of(call->send, (size_t)call->send_count, call->send_type, call->comm);
        collwise_bytes_pack(&mine, call->send, (size_t)call->send_count, call->send_type, call->comm);
        algorithm->gatherv(mine.data, mine.bytes, NULL, NULL, call->root, collwise_private(call->comm), with);
        collwise_bytes_release(&mine);
        return;
    }
    collwise_blocks all = receive_blocks(call);
    put_own_block(&all, call, rank);
    if (procs > 1) {
        algorithm->gatherv(all.data + all.offsets[rank], all.offsets[rank + 1] - all.offsets[rank], all.data,
                           all.offsets, call->root, collwise_private(call->comm), with);
    }
    collwise_blocks_unpack_all(&all);
    collwise_blocks_release(&all);
}

static void scatter_own_block(const collwise_blocks *all, const collwise_call *call, int rank) {
    if (call->receive != MPI_IN_PLACE) {
        collwise_unpack(all->data + all->offsets[rank], call->receive, (size_t)call->receive_count, call->receive_type,
                        call->comm);
    }
}

static void run_scatter(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int rank = collwise_rank_in(call->comm), procs = collwise_size_of(call->comm);
    size_t count = (size_t)call->receive_count;
    if (rank != call->root) {
        collwise_bytes mine = collwise_bytes_of(call->receive, count, call->receive_type, call->comm);
        if (mine.bytes > 0) {
            algorithm->scatter(NULL, mine.data, mine.bytes, call->root, collwise_private(call->comm), with);
        }
        collwise_bytes_unpack(&mine, call->receive, count, call->receive_type, call->comm);
        collwise_bytes_release(&mine);
        return;
    }
    collwise_blocks all = send_blocks(call);
    size_t block_bytes = all.offsets[1];
    collwise_blocks_pack_all(&all);
    if (procs > 1 && block_bytes > 0) {
        algorithm->scatter(all.data, NULL, block_bytes, call->root, collwise_private(call->comm), with);
    }
    scatter_own_block(&all, call, rank);
    collwise_blocks_release(&all);
}

static void run_scatterv(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int rank = collwise_rank_in(call->comm), procs = collwise_size_of(call->comm);
    size_t count = (size_t)call->receive_count;
    if (rank != call->root) {
        collwise_bytes mine = collwise_bytes_of(call->receive, count, call->receive_type, call->comm);
        algorithm->scatterv(NULL, NULL, mine.data, mine.bytes, call->root, collwise_private(call->comm), with);
        collwise_bytes_unpack(&mine, call->receive, count, call->receive_type, call->comm);
        collwise_bytes_release(&mine);
        return;
    }
    collwise_blocks all = send_blocks(call);
    collwise_blocks_pack_all(&all);
    if (procs > 1) {
        algorithm->scatterv(all.data, all.offsets, NULL, 0, call->root, collwise_private(call->comm), with);
    }
    scatter_own_block(&all, call, rank);
    collwise_blocks_release(&all);
}

static void run_allgather(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    collwise_blocks all = receive_blocks(call);
    put_own_block(&all, call, collwise_rank_in(call->comm));
    if (all.procs > 1 && all.offsets[1] > 0) {
        algorithm->allgather(all.data, all.offsets[1], collwise_private(call->comm), with);
    }
    collwise_blocks_unpack_all(&all);
    collwise_blocks_release(&all);
}

static void run_allgatherv(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    collwise_blocks all = receive_blocks(call);
    put_own_block(&all, call, collwise_rank_in(call->comm));
    if (all.procs > 1 && all.offsets[all.procs] > 0) {
        algorithm->allgatherv(all.data, all.offsets, collwise_private(call->comm), with);
    }
    collwise_blocks_unpack_all(&all);
    collwise_blocks_release(&all);
}

/* In place, `receive` holds the data to be sent, which is sent from a copy. */
static collwise_blocks alltoall_send_blocks(const collwise_call *call, const collwise_blocks *receive, char **sent) {
    if (call->send != MPI_IN_PLACE) {
        collwise_blocks send = send_blocks(call);
        collwise_blocks_pack_all(&send);
        *sent = send.data;
        return send;
    }
    collwise_blocks send = *receive;
    collwise_blocks_pack_all(receive);
    *sent = collwise_scratch(receive->offsets[receive->procs], call->comm);
    collwise_copy(*sent, receive->data, receive->offsets[receive->procs]);
    return send;
}

static void run_alltoall_or_alltoallv(const collwise_algorithm *algorithm, const collwise_call *call,
                                      collwise_parameters with, int is_v) {
    int rank = collwise_rank_in(call->comm);
    char *sent;
    collwise_blocks receive = receive_blocks(call);
    collwise_blocks send = alltoall_send_blocks(call, &receive, &sent);
    collwise_copy(receive.data + receive.offsets[rank], sent + send.offsets[rank],
                  receive.offsets[rank + 1] - receive.offsets[rank]);
    if (receive.procs > 1 && is_v) {
        algorithm->alltoallv(sent, send.offsets, receive.data, receive.offsets, collwise_private(call->comm), with);
    } else if (receive.procs > 1 && receive.offsets[1] > 0) {
        algorithm->alltoall(sent, receive.data, receive.offsets[1], collwise_private(call->comm), with);
    }
    collwise_blocks_unpack_all(&receive);
    if (call->send == MPI_IN_PLACE) {
        collwise_scratch_free(sent);
    } else {
        collwise_blocks_release(&send);
    }
    collwise_blocks_release(&receive);
}

static void run_alltoall(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    run_alltoall_or_alltoallv(algorithm, call, with, 0);
}

static void run_alltoallv(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    run_alltoall_or_alltoallv(algorithm, call, with, 1);
}

static void run_barrier(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    if (collwise_size_of(call->comm) > 1) {
        algorithm->barrier(collwise_private(call->comm), with);
    }
}

static void run_reduce(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    int at_root = collwise_rank_in(call->comm) == call->root;
    size_t count = (size_t)call->receive_count;
    collwise_operation op = collwise_operation_of(call->op, call->receive_type, call->comm);
    size_t bytes = count * op.element_bytes;
    const void *own = call->send == MPI_IN_PLACE ? call->receive : call->send;
    char *own_copy = NULL, *result_copy = NULL;
    const char *data = own;
    char *result = at_root ? call->receive : NULL;
    if (bytes > 0 && (!op.contiguous || call->send == MPI_IN_PLACE)) {
        data = own_copy = collwise_scratch(bytes, call->comm);
        collwise_pack(own_copy, own, count, call->receive_type, call->comm);
    }
    if (bytes > 0 && at_root && !op.contiguous) {
        result = result_copy = collwise_scratch(bytes, call->comm);
    }
    if (bytes > 0 && collwise_size_of(call->comm) > 1) {
        algorithm->reduce(data, result, count, &op, call->root, collwise_private(call->comm), with);
    } else if (bytes > 0) {
        collwise_copy(result, data, bytes);
    }
    if (result_copy != NULL) {
        collwise_unpack(result, call->receive, count, call->receive_type, call->comm);
    }
    collwise_scratch_free(own_copy);
    collwise_scratch_free(result_copy);
}

/* Reductions in which `data` holds each process's contribution first and its result in the end. */
static char *contribution(const collwise_call *call, const collwise_operation *op, char **copy) {
    size_t count = (size_t)call->receive_count;
    const void *own = call->send == MPI_IN_PLACE ? call->receive : call->send;
    *copy = op->contiguous ? NULL : collwise_scratch(count * op->element_bytes, call->comm);
    char *data = *copy != NULL ? *copy : call->receive;
    if (data != own) {
        collwise_pack(data, own, count, call->receive_type, call->comm);
    }
    return data;
}

static void run_allreduce(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    size_t count = (size_t)call->receive_count;
    collwise_operation op = collwise_operation_of(call->op, call->receive_type, call->comm);
    if (count * op.element_bytes == 0) {
        return;
    }
    char *copy, *data = contribution(call, &op, &copy);
    if (collwise_size_of(call->comm) > 1) {
        algorithm->allreduce(data, count, &op, collwise_private(call->comm), with);
    }
    if (copy != NULL) {
        collwise_unpack(copy, call->receive, count, call->receive_type, call->comm);
    }
    collwise_scratch_free(copy);
}

/* The result of exscan is undefined on the first process, whose buffer is not written. */
static void run_exscan(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    size_t count = (size_t)call->receive_count;
    collwise_operation op = collwise_operation_of(call->op, call->receive_type, call->comm);
    size_t bytes = count * op.element_bytes;
    if (bytes == 0 || collwise_size_of(call->comm) == 1) {
        return;
    }
    int is_first = collwise_rank_in(call->comm) == 0;
    char *copy = NULL, *data;
    if (is_first) {
        data = copy = collwise_scratch(bytes, call->comm);
        collwise_pack(copy, call->send == MPI_IN_PLACE ? call->receive : call->send, count, call->receive_type,
                      call->comm);
    } else {
        data = contribution(call, &op, &copy);
    }
    algorithm->exscan(data, count, &op, collwise_private(call->comm), with);
    if (copy != NULL && !is_first) {
        collwise_unpack(copy, call->receive, count, call->receive_type, call->comm);
    }
    collwise_scratch_free(copy);
}

/* `counts` are those of MPI_Reduce_scatter, or NULL for blocks of `receive_count` elements. */
static void run_reduce_scatter_by(const collwise_algorithm *algorithm, const collwise_call *call,
                                  collwise_parameters with, const int *counts) {
    int rank = collwise_rank_in(call->comm), procs = collwise_size_of(call->comm);
    collwise_operation op = collwise_operation_of(call->op, call->receive_type, call->comm);
    size_t *offsets = collwise_sizes((size_t)procs + 1, call->comm);
    offsets[0] = 0;
    for (int i = 0; i < procs; i++) {
        offsets[i + 1] = offsets[i] + (size_t)(counts != NULL ? counts[i] : call->receive_count);
    }
    size_t elements = offsets[procs], my_elements = offsets[rank + 1] - offsets[rank];
    if (elements * op.element_bytes > 0) {
        char *data = collwise_scratch(elements * op.element_bytes, call->comm);
        collwise_pack(data, call->send == MPI_IN_PLACE ? call->receive : call->send, elements, call->receive_type,
                      call->comm);
        if (procs == 1) {
            collwise_unpack(data, call->receive, elements, call->receive_type, call->comm);
        } else {
            collwise_bytes mine = collwise_bytes_of(call->receive, my_elements, call->receive_type, call->comm);
            algorithm->reduce_scatter(data, offsets, mine.data, &op, collwise_private(call->comm), with);
            collwise_bytes_unpack(&mine, call->receive, my_elements, call->receive_type, call->comm);
            collwise_bytes_release(&mine);
        }
        collwise_scratch_free(data);
    }
    collwise_sizes_free(offsets);
}

static void run_reduce_scatter(const collwise_algorithm *algorithm, const collwise_call *call,
                               collwise_parameters with) {
    run_reduce_scatter_by(algorithm, call, with, call->receive_counts);
}

static void run_reduce_scatter_block(const collwise_algorithm *algorithm, const collwise_call *call,
                                     collwise_parameters with) {
    run_reduce_scatter_by(algorithm, call, with, NULL);
}

/* Runs a mock-up of allreduce, scan or reduce_scatter_block, in the program's own buffers unless their type has holes,
 * or a reduce_scatter_block is in place, whose result is smaller than its operand. */
static void run_mock_up(const collwise_algorithm *algorithm, const collwise_call *call) {
    int procs = collwise_size_of(call->comm), in_place = call->send == MPI_IN_PLACE;
    collwise_operation op = collwise_operation_of(call->op, call->receive_type, call->comm);
    size_t count = (size_t)call->receive_count;
    int has_blocks = algorithm->kind == COLLWISE_REDUCE_SCATTER_BLOCK, is_copied = in_place && has_blocks;
    size_t all = count * (has_blocks ? (size_t)procs : 1);
    const void *contribution = in_place ? call->receive : call->send;
    char *own_copy = NULL, *result_copy = NULL;
    if (count * op.element_bytes == 0) {
        return;
    }
    if (!op.contiguous || is_copied) {
        own_copy = collwise_scratch(all * op.element_bytes, call->comm);
        collwise_pack(own_copy, contribution, all, call->receive_type, call->comm);
    }
    if (!op.contiguous && (!in_place || is_copied)) {
        result_copy = collwise_scratch(count * op.element_bytes, call->comm);
    }
    const char *own = own_copy != NULL ? own_copy : contribution;
    char *result = op.contiguous ? call->receive : result_copy != NULL ? result_copy : own_copy;
    if (procs > 1) {
        algorithm->mock_up(own, result, count, &op, collwise_private(call->comm));
    } else {
        collwise_copy(result, own, count * op.element_bytes);
    }
    if (!op.contiguous) {
        collwise_unpack(result, call->receive, count, call->receive_type, call->comm);
    }
    collwise_scratch_free(result_copy);
    collwise_scratch_free(own_copy);
}

typedef void runner(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with);

/* Scan has the form of allreduce. */
static runner *const runners[COLLWISE_COLLECTIVES] = {
    [COLLWISE_BCAST] = run_bcast,
    [COLLWISE_GATHER] = run_gather,
    [COLLWISE_GATHERV] = run_gatherv,
    [COLLWISE_SCATTER] = run_scatter,
    [COLLWISE_SCATTERV] = run_scatterv,
    [COLLWISE_ALLGATHER] = run_allgather,
    [COLLWISE_ALLGATHERV] = run_allgatherv,
    [COLLWISE_ALLTOALL] = run_alltoall,
    [COLLWISE_ALLTOALLV] = run_alltoallv,
    [COLLWISE_BARRIER] = run_barrier,
    [COLLWISE_REDUCE] = run_reduce,
    [COLLWISE_ALLREDUCE] = run_allreduce,
    [COLLWISE_REDUCE_SCATTER] = run_reduce_scatter,
    [COLLWISE_REDUCE_SCATTER_BLOCK] = run_reduce_scatter_block,
    [COLLWISE_SCAN] = run_allreduce,
    [COLLWISE_EXSCAN] = run_exscan,
};

void collwise_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with) {
    collwise_call absolute;
    with.count = count_of(algorithm, with);
    if (MPI_BOTTOM != NULL) { /* SimGrid's: absolute addresses count from 0 all the same */
        absolute = *call;
        absolute.send = call->send == MPI_BOTTOM ? NULL : call->send;
        absolute.receive = call->receive == MPI_BOTTOM ? NULL : call->receive;
        call = &absolute;
    }
    if (collwise_has_mock_up_form(algorithm)) {
        run_mock_up(algorithm, call);
    } else {
        runners[algorithm->kind](algorithm, call, with);
    }
}

void collwise_run_tasks(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                        const collwise_observer *observer) {
    MPI_Comm private = collwise_private(call->comm);
    collwise_keep(private, COLLWISE_KEPT_OBSERVER, (void *)observer, NULL);
    collwise_run(algorithm, call, with);
    collwise_keep_no_longer(private, COLLWISE_KEPT_OBSERVER);
}
