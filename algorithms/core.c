/* The greatest power of two of the processes, in rank order, and recursive halving among them: at step k, process i
 * meets process i xor 2^k, and each keeps the half of its elements that bit k of its number names. Partners at step k
 * stand for the runs of 2^k processes to both sides of one border, so that rank order is kept. */
#include "internal.h"

int collwise_core_rank(const collwise_core *core, int index) {
    if (index >= core->pairs) {
        return index + core->pairs;
    }
    return core->kept / 2 == index ? core->kept : 2 * index;
}

static int index_of(const collwise_core *core, int rank) {
    return rank < 2 * core->pairs ? rank / 2 : rank - core->pairs;
}

collwise_core collwise_core_of(int kept, MPI_Comm comm) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    collwise_core core = {.kept = kept, .rank = rank, .steps = collwise_log2(procs), .comm = comm};
    core.pairs = procs - (1 << core.steps);
    core.kept_index = index_of(&core, kept);
    core.partner = rank < 2 * core.pairs ? rank ^ 1 : -1;
    int index = index_of(&core, rank);
    core.index = collwise_core_rank(&core, index) == rank ? index : -1;
    return core;
}

void collwise_core_hand_out(char *data, size_t bytes, const collwise_core *core) {
    if (core->partner >= 0 && core->index >= 0) {
        collwise_send(data, bytes, core->partner, core->comm);
    } else if (core->partner >= 0) {
        collwise_receive(data, bytes, core->partner, core->comm);
    }
}

collwise_part collwise_part_of(size_t elements, int index, int steps) {
    collwise_part part = {.first = 0, .count = elements};
    for (int step = 0; step < steps; step++) {
        size_t lower = part.count - part.count / 2;
        if ((index >> step) % 2 == 0) {
            part.count = lower;
        } else {
            part.first += lower;
            part.count -= lower;
        }
    }
    return part;
}

/* Exchanges what each has of the other's part, and combines. */
static void trade(char *data, collwise_part mine, collwise_part theirs, char *arrived, const collwise_operation *op,
                  int partner, const collwise_core *core) {
    size_t unit = op->element_bytes;
    collwise_sendrecv(data + theirs.first * unit, theirs.count * unit, partner, arrived, mine.count * unit, partner,
                      core->comm);
    if (partner < core->rank) {
        collwise_combine(op, arrived, data + mine.first * unit, mine.count);
    } else {
        collwise_combine_left(op, data + mine.first * unit, arrived, mine.count);
    }
}

/* The two of a pair reduce a half each; then all of it is with the one in the core. */
static void join_pair(char *data, size_t elements, char *arrived, const collwise_operation *op,
                      const collwise_core *core) {
    int outside = core->index < 0;
    collwise_part mine = collwise_part_of(elements, outside, 1), theirs = collwise_part_of(elements, !outside, 1);
    trade(data, mine, theirs, arrived, op, core->partner, core);
    size_t unit = op->element_bytes;
    if (outside) {
        collwise_send(data + mine.first * unit, mine.count * unit, core->partner, core->comm);
    } else {
        collwise_receive(data + theirs.first * unit, theirs.count * unit, core->partner, core->comm);
    }
}

void collwise_core_reduce_scatter(char *data, size_t elements, const collwise_operation *op,
                                  const collwise_core *core) {
    char *arrived = collwise_scratch((elements - elements / 2) * op->element_bytes, core->comm);
    if (core->partner >= 0) {
        join_pair(data, elements, arrived, op, core);
    }
    for (int step = 0; core->index >= 0 && step < core->steps; step++) {
        int other = core->index ^ 1 << step;
        trade(data, collwise_part_of(elements, core->index, step + 1), collwise_part_of(elements, other, step + 1),
              arrived, op, collwise_core_rank(core, other), core);
    }
    collwise_scratch_free(arrived);
}
