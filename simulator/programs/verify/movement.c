/* The collectives that move data: each called once and compared with its definition, which is written down here. */
#include "verify.h"

#include <stdlib.h>

/* A process's description of a message of its own: kinds take turns, and the one after the root differs from it. */
static verify_kind kind_at(const verify_call *call, int rank, int procs) {
    int behind_root = (rank - call->root + procs) % procs;
    return call->kinds[behind_root == 0 || behind_root % 2 == 1];
}

/* The size of the block that goes from one process to another, of which the collective's name ends in v or not.
 * Messages that alltoallv swaps in place have the same size in both directions. */
static int block_ints(const verify_call *call, bool is_v, int from, int to) {
    unsigned which = call->serial + (unsigned)(call->in_place ? from + to : 3 * from + to);
    return is_v ? verify_differing_size(call->ints, which) : call->ints;
}

/* No two pairs of processes exchange the same bytes. */
static int message_of(int from, int to) { return from * 1021 + to; }

/* A buffer of the blocks that process `of` exchanges with each other. */
typedef enum { FROM, TO } direction;

static verify_buffer blocks_of(const verify_call *call, bool is_v, verify_kind kind, direction direction, int of,
                               MPI_Comm comm) {
    int procs = collwise_size_of(comm);
    if (!is_v) {
        return verify_buffer_of_blocks(kind, call->ints, procs);
    }
    int *ints = collwise_allocate((size_t)procs * sizeof *ints, comm);
    for (int rank = 0; rank < procs; rank++) {
        ints[rank] = direction == FROM ? block_ints(call, is_v, of, rank) : block_ints(call, is_v, rank, of);
    }
    verify_buffer buffer = verify_buffer_of_scattered(kind, ints, procs, call->serial + (unsigned)direction);
    free(ints);
    return buffer;
}

static void send_one(collwise_call *made, const verify_buffer *buffer) {
    made->send = verify_buffer_pointer(buffer);
    made->send_count = buffer->counts[0];
    made->send_type = buffer->type;
}

static void receive_one(collwise_call *made, const verify_buffer *buffer) {
    made->receive = verify_buffer_pointer(buffer);
    made->receive_count = buffer->counts[0];
    made->receive_type = buffer->type;
}

static void send_blocks(collwise_call *made, const verify_buffer *buffer, bool is_v) {
    send_one(made, buffer);
    if (is_v) {
        made->send_count = -1;
        made->send_counts = buffer->counts;
        made->send_displacements = buffer->displacements;
    }
}

static void receive_blocks(collwise_call *made, const verify_buffer *buffer, bool is_v) {
    receive_one(made, buffer);
    if (is_v) {
        made->receive_count = -1;
        made->receive_counts = buffer->counts;
        made->receive_displacements = buffer->displacements;
    }
}

/* Broadcast: everybody ends with the root's message. */
bool verify_bcast(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm);
    verify_buffer message = verify_buffer_of_one(
        rank == call->root ? call->kinds[0] : kind_at(call, rank, collwise_size_of(comm)), call->ints);
    verify_buffer_fill(&message, rank == call->root ? VERIFY_THROUGHOUT : VERIFY_AFTER, 0, call->serial, call->root);
    collwise_call made = verify_blank_call(call, comm);
    receive_one(&made, &message);
    verify_make(call, &made);
    bool right = verify_buffer_is_right(&message, "broadcast", comm, complaint);
    verify_buffer_free(&message);
    return right;
}

/* Gather: the root ends with the blocks in rank order. Only the root names a receive buffer. */
static bool gather(const verify_call *call, bool is_v, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm), root = call->root;
    verify_buffer all, mine = verify_buffer_of_one(kind_at(call, rank, procs), block_ints(call, is_v, rank, root));
    collwise_call made = verify_blank_call(call, comm);
    verify_buffer_fill(&mine, VERIFY_THROUGHOUT, 0, call->serial, rank);
    send_one(&made, &mine);
    if (rank == root) {
        all = blocks_of(call, is_v, call->kinds[0], TO, root, comm);
        for (int from = 0; from < procs; from++) {
            verify_time when = call->in_place && from == root ? VERIFY_THROUGHOUT : VERIFY_AFTER;
            verify_buffer_fill(&all, when, from, call->serial, from);
        }
        receive_blocks(&made, &all, is_v);
        if (call->in_place) {
            made.send = MPI_IN_PLACE;
            made.send_count = -1;
            made.send_type = MPI_DATATYPE_NULL;
        }
    }
    verify_make(call, &made);
    bool right = verify_buffer_is_right(&mine, "send", comm, complaint);
    if (rank == root) {
        right = right && verify_buffer_is_right(&all, "receive", comm, complaint);
        verify_buffer_free(&all);
    }
    verify_buffer_free(&mine);
    return right;
}

bool verify_gather(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return gather(call, false, comm, complaint);
}

bool verify_gatherv(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return gather(call, true, comm, complaint);
}

/* Scatter: everybody ends with its block of the root's. In place, the root's own stays where it is. */
static bool scatter(const verify_call *call, bool is_v, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm), root = call->root;
    verify_buffer all, mine = verify_buffer_of_one(kind_at(call, rank, procs), block_ints(call, is_v, root, rank));
    bool receives = rank != root || !call->in_place;
    collwise_call made = verify_blank_call(call, comm);
    if (rank == root) {
        all = blocks_of(call, is_v, call->kinds[0], FROM, root, comm);
        for (int to = 0; to < procs; to++) {
            verify_buffer_fill(&all, VERIFY_THROUGHOUT, to, call->serial, to);
        }
        send_blocks(&made, &all, is_v);
    }
    if (receives) {
        verify_buffer_fill(&mine, VERIFY_AFTER, 0, call->serial, rank);
        receive_one(&made, &mine);
    } else {
        made.receive = MPI_IN_PLACE;
    }
    verify_make(call, &made);
    bool right = verify_buffer_is_right(&mine, "receive", comm, complaint);
    if (rank == root) {
        right = right && verify_buffer_is_right(&all, "send", comm, complaint);
        verify_buffer_free(&all);
    }
    verify_buffer_free(&mine);
    return right;
}

bool verify_scatter(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return scatter(call, false, comm, complaint);
}

bool verify_scatterv(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return scatter(call, true, comm, complaint);
}

/* Without a root, neighbours describe what they send in two ways, and pairs of neighbours what they receive. */
static verify_kind send_kind(const verify_call *call, int rank) { return call->kinds[rank % 2]; }
static verify_kind receive_kind(const verify_call *call, int rank) { return call->kinds[(rank / 2 + 1) % 2]; }

/* Allgather: everybody ends with all blocks in rank order. Blocks go to everybody, so their sizes are those to rank 0.
 */
static bool allgather(const verify_call *call, bool is_v, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm);
    verify_buffer mine = verify_buffer_of_one(send_kind(call, rank), block_ints(call, is_v, rank, 0));
    verify_buffer all = blocks_of(call, is_v, receive_kind(call, rank), TO, 0, comm);
    collwise_call made = verify_blank_call(call, comm);
    verify_buffer_fill(&mine, VERIFY_THROUGHOUT, 0, call->serial, rank);
    for (int from = 0; from < procs; from++) {
        verify_time when = call->in_place && from == rank ? VERIFY_THROUGHOUT : VERIFY_AFTER;
        verify_buffer_fill(&all, when, from, call->serial, from);
    }
    receive_blocks(&made, &all, is_v);
    if (call->in_place) {
        made.send = MPI_IN_PLACE;
    } else {
        send_one(&made, &mine);
    }
    verify_make(call, &made);
    bool right = verify_buffer_is_right(&mine, "send", comm, complaint) &&
                 verify_buffer_is_right(&all, "receive", comm, complaint);
    verify_buffer_free(&mine);
    verify_buffer_free(&all);
    return right;
}

bool verify_allgather(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return allgather(call, false, comm, complaint);
}

bool verify_allgatherv(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return allgather(call, true, comm, complaint);
}

/* All-to-all: block i of process j ends as block j of process i. In place, the blocks to be sent lie in the receive
 * buffer. */
static bool alltoall(const verify_call *call, bool is_v, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    int rank = collwise_rank_in(comm), procs = collwise_size_of(comm);
    verify_buffer sent = blocks_of(call, is_v, send_kind(call, rank), FROM, rank, comm);
    verify_buffer received = blocks_of(call, is_v, receive_kind(call, rank), TO, rank, comm);
    collwise_call made = verify_blank_call(call, comm);
    for (int other = 0; other < procs; other++) {
        verify_buffer_fill(&received, VERIFY_AFTER, other, call->serial, message_of(other, rank));
        if (call->in_place) {
            verify_buffer_fill(&received, VERIFY_BEFORE, other, call->serial, message_of(rank, other));
        } else {
            verify_buffer_fill(&sent, VERIFY_THROUGHOUT, other, call->serial, message_of(rank, other));
        }
    }
    receive_blocks(&made, &received, is_v);
    if (call->in_place) {
        made.send = MPI_IN_PLACE;
    } else {
        send_blocks(&made, &sent, is_v);
    }
    verify_make(call, &made);
    bool right = verify_buffer_is_right(&sent, "send", comm, complaint) &&
                 verify_buffer_is_right(&received, "receive", comm, complaint);
    verify_buffer_free(&sent);
    verify_buffer_free(&received);
    return right;
}

bool verify_alltoall(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return alltoall(call, false, comm, complaint);
}

bool verify_alltoallv(const verify_call *call, MPI_Comm comm, char complaint[VERIFY_TEXT]) {
    return alltoall(call, true, comm, complaint);
}
