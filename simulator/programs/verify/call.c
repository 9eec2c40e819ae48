/* One call of a collective on real data. What must come out is written down from the collective's definition. */
#include "verify.h"

#include <stdio.h>
#include <string.h>

static bool same(const verify_image *expected, const verify_image *found, const char *buffer, MPI_Comm comm,
                 char complaint[VERIFY_TEXT]) {
    ptrdiff_t where;
    if (!verify_image_differs(expected, found, &where)) {
        return true;
    }
    int rank;
    MPI_Comm_rank(comm, &rank);
    snprintf(complaint, VERIFY_TEXT, "rank %d has a wrong byte at offset %td of its %s buffer", rank, where, buffer);
    return false;
}

/* Broadcast: everybody ends with the root's message. */
static bool run_bcast(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    verify_layout layout = verify_layout_make(rank == call->root ? call->at_root : call->elsewhere, call->ints);
    verify_image expected = verify_image_make(&layout, 1);
    verify_image message = verify_image_copy(&expected);
    verify_image_write(&expected, &layout, 0, call->serial, call->root);
    if (rank == call->root) {
        verify_image_write(&message, &layout, 0, call->serial, call->root);
    }
    collwise_run(call->algorithm,
                 &(collwise_call){.receive = verify_image_buffer(&message),
                                  .receive_count = layout.count,
                                  .receive_type = layout.type,
                                  .root = call->root,
                                  .comm = comm},
                 call->with);
    bool right = same(&expected, &message, "broadcast", comm, complaint);
    verify_image_free(&expected);
    verify_image_free(&message);
    verify_layout_free(&layout);
    return right;
}

/* Only the root names a receive buffer: the others' arguments must not be looked at. */
static void gather_elsewhere(const verify_call *call, const verify_layout *layout, const verify_image *mine,
                             MPI_Comm comm) {
    collwise_run(call->algorithm,
                 &(collwise_call){.send = verify_image_buffer(mine),
                                  .send_count = layout->count,
                                  .send_type = layout->type,
                                  .receive_count = -1,
                                  .receive_type = MPI_DATATYPE_NULL,
                                  .root = call->root,
                                  .comm = comm},
                 call->with);
}

static bool gather_at_root(const verify_call *call, const verify_layout *layout, const verify_image *mine,
                           MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int procs;
    MPI_Comm_size(comm, &procs);
    verify_layout all_layout = verify_layout_make(call->at_root, call->ints);
    verify_image expected = verify_image_make(&all_layout, procs);
    verify_image all = verify_image_copy(&expected);
    for (int rank = 0; rank < procs; rank++) {
        verify_image_write(&expected, &all_layout, rank, call->serial, rank);
    }
    collwise_call made = {.send = verify_image_buffer(mine),
                          .send_count = layout->count,
                          .send_type = layout->type,
                          .receive = verify_image_buffer(&all),
                          .receive_count = all_layout.count,
                          .receive_type = all_layout.type,
                          .root = call->root,
                          .comm = comm};
    if (call->in_place) {
        verify_image_write(&all, &all_layout, call->root, call->serial, call->root);
        made.send = MPI_IN_PLACE;
        made.send_count = -1;
        made.send_type = MPI_DATATYPE_NULL;
    }
    collwise_run(call->algorithm, &made, call->with);
    bool right = same(&expected, &all, "receive", comm, complaint);
    verify_image_free(&expected);
    verify_image_free(&all);
    verify_layout_free(&all_layout);
    return right;
}

/* Gather: the root ends with the blocks in rank order; send buffers stay as they were. */
static bool run_gather(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    verify_layout layout = verify_layout_make(call->elsewhere, call->ints);
    verify_image expected = verify_image_make(&layout, 1);
    verify_image_write(&expected, &layout, 0, call->serial, rank);
    verify_image mine = verify_image_copy(&expected);
    bool right = true;
    if (rank == call->root) {
        right = gather_at_root(call, &layout, &mine, comm, complaint);
    } else {
        gather_elsewhere(call, &layout, &mine, comm);
    }
    if (right) {
        right = same(&expected, &mine, "send", comm, complaint);
    }
    verify_image_free(&expected);
    verify_image_free(&mine);
    verify_layout_free(&layout);
    return right;
}

bool verify_call_is_right(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    if (strcmp(call->algorithm->collective, "bcast") == 0) {
        return run_bcast(call, comm, complaint);
    }
    if (strcmp(call->algorithm->collective, "gather") == 0) {
        return run_gather(call, comm, complaint);
    }
    snprintf(complaint, VERIFY_TEXT, "verify has no definition of this collective");
    return false;
}
