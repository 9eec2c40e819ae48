/* Reduce-scatter by vector halving, which recursive halving and the butterfly share. In each of log2 W rounds, partners
 * among the W processes of the core give each other the half of what they hold that the other keeps. They differ in who
 * meets first: the furthest, or the nearest, so that neighbours' contributions come together in rank order; then what a
 * process ends with is not its own share but that of its mirror image, whose number has the bits of its own in reverse.
 */
#include "internal.h"

/* The share of number `index`: its own block and that of its partner outside the core, whose rank is the next. */
static size_t share_start(const size_t *offsets, const collwise_core *core, int index) {
    return offsets[collwise_core_rank(core, index)];
}

static int mirror_image(int index, int steps) {
    int mirrored = 0;
    for (int step = 0; step < steps; step++) {
        mirrored = 2 * mirrored + (index >> step) % 2;
    }
    return mirrored;
}

static void halve(char *data, char *received, const size_t *offsets, const collwise_operation *op, int nearest_first,
                  const collwise_core *core) {
    int first = 0, workers = 1 << core->steps;
    for (int shares = workers / 2; shares > 0; shares /= 2) {
        int other = core->index ^ (nearest_first ? workers / (2 * shares) : shares);
        int partner = collwise_core_rank(core, other);
        int given = core->index < other ? first + shares : first;
        first = core->index < other ? first : first + shares;
        size_t give = share_start(offsets, core, given), keep = share_start(offsets, core, first);
        size_t give_elements = share_start(offsets, core, given + shares) - give;
        size_t keep_elements = share_start(offsets, core, first + shares) - keep;
        collwise_sendrecv(data + give * op->element_bytes, give_elements * op->element_bytes, partner, received,
                          keep_elements * op->element_bytes, partner, core->comm);
        if (other < core->index) {
            collwise_combine(op, received, data + keep * op->element_bytes, keep_elements);
        } else {
            collwise_combine_left(op, data + keep * op->element_bytes, received, keep_elements);
        }
    }
}

/* Each block of the share that lies here goes to the process that it is for: to the mirror image or its partner, for
 * mirror images have each other's shares. */
static void deliver(const char *data, char *mine, const size_t *offsets, size_t element_bytes, int share,
                    const collwise_core *core) {
    int image = collwise_core_rank(core, share), end = collwise_core_rank(core, share + 1);
    collwise_requests requests = collwise_requests_make(3, core->comm);
    if (image != core->rank) {
        collwise_start_receive(&requests, mine, (offsets[core->rank + 1] - offsets[core->rank]) * element_bytes, image);
    }
    for (int rank = image; rank < end; rank++) {
        const char *block = data + offsets[rank] * element_bytes;
        size_t block_bytes = (offsets[rank + 1] - offsets[rank]) * element_bytes;
        if (rank == core->rank) {
            collwise_copy(mine, block, block_bytes);
        } else {
            collwise_start_send(&requests, block, block_bytes, rank);
        }
    }
    collwise_wait(&requests);
    collwise_requests_free(&requests);
}

void collwise_reduce_scatter_by_halving(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                        int nearest_first, MPI_Comm comm) {
    collwise_core core = collwise_core_of(0, comm);
    size_t elements = share_start(offsets, &core, 1 << core.steps), bytes = elements * op->element_bytes;
    int index = core.index >= 0 ? core.index : core.rank / 2;
    int share = nearest_first ? mirror_image(index, core.steps) : index;
    if (core.index < 0) {
        collwise_send(data, bytes, core.partner, comm);
        collwise_receive(mine, (offsets[core.rank + 1] - offsets[core.rank]) * op->element_bytes,
                         collwise_core_rank(&core, share), comm);
        return;
    }
    char *received = collwise_scratch(bytes, comm);
    if (core.partner >= 0) {
        collwise_receive(received, bytes, core.partner, comm);
        collwise_combine_left(op, data, received, elements);
    }
    halve(data, received, offsets, op, nearest_first, &core);
    deliver(data, mine, offsets, op->element_bytes, share, &core);
    collwise_scratch_free(received);
}
