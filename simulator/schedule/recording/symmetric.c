/* Algorithms whose processes do the same, each relative to itself, all of them or every second one: one process or two
 * are recorded for all. */
#include "recording.h"

#include <string.h>

typedef struct {
    collwise_collective kind;
    const char *algorithm;
} listed;

static const listed SYMMETRIC[] = {
    {COLLWISE_ALLGATHER, "bruck"},     {COLLWISE_ALLGATHER, "ring"},
    {COLLWISE_ALLGATHER, "sparbit"},   {COLLWISE_ALLGATHERV, "bruck"},
    {COLLWISE_ALLGATHERV, "ring"},     {COLLWISE_ALLTOALL, "bruck"},
    {COLLWISE_ALLTOALL, "linear"},     {COLLWISE_ALLTOALL, "linear_sync"},
    {COLLWISE_ALLTOALL, "pairwise"},   {COLLWISE_ALLTOALLV, "linear"},
    {COLLWISE_ALLTOALLV, "pairwise"},  {COLLWISE_BARRIER, "bruck"},
    {COLLWISE_ALLREDUCE, "ring"},      {COLLWISE_ALLREDUCE, "segmented_ring"},
    {COLLWISE_REDUCE_SCATTER, "ring"}, {COLLWISE_REDUCE_SCATTER_BLOCK, "ring"},
};

/* Those of even and of odd ranks differ. */
static const listed ALTERNATING[] = {
    {COLLWISE_ALLGATHER, "neighbor_exchange"},
    {COLLWISE_ALLGATHERV, "neighbor_exchange"},
};

/* Among a power of two processes, partners differ in a bit of their ranks. */
static const listed MIRRORED[] = {
    {COLLWISE_ALLGATHER, "recursive_doubling"},      {COLLWISE_BARRIER, "recursive_doubling"},
    {COLLWISE_ALLREDUCE, "recursive_doubling"},      {COLLWISE_ALLREDUCE, "rabenseifner"},
    {COLLWISE_REDUCE_SCATTER, "recursive_halving"},  {COLLWISE_REDUCE_SCATTER_BLOCK, "recursive_halving"},
    {COLLWISE_REDUCE_SCATTER, "recursive_doubling"}, {COLLWISE_REDUCE_SCATTER_BLOCK, "recursive_doubling"},
};

/* Whether the algorithm is one of a list. */
static int is_among(const recording *to, const listed *list, size_t count) {
    const char *name = to->algorithm == NULL ? NULL : to->algorithm->name;
    if (name == NULL || !to->program_is_collective) {
        return 0;
    }
    size_t i = 0;
    while (i < count && (list[i].kind != to->algorithm->kind || strcmp(list[i].algorithm, name) != 0)) {
        i++;
    }
    return i < count;
}

/* Whether each process has a block of the same size of what is reduced. */
static int has_equal_blocks(const recording *to) {
    size_t elements = to->wanted->message_bytes / to->op.element_bytes;
    int is_cut = to->algorithm->kind == COLLWISE_ALLREDUCE || to->algorithm->kind == COLLWISE_REDUCE_SCATTER;
    return !is_cut || elements % (size_t)to->made->procs == 0;
}

int recording_period(const recording *to) {
    if (to->processes_alone == 0 && is_among(to, SYMMETRIC, sizeof SYMMETRIC / sizeof *SYMMETRIC) &&
        has_equal_blocks(to)) {
        return 1;
    }
    return to->processes_alone == 0 && is_among(to, ALTERNATING, sizeof ALTERNATING / sizeof *ALTERNATING)
               ? 2
               : to->made->procs;
}

int recording_is_mirrored(const recording *to) {
    int procs = to->made->procs;
    return (procs & (procs - 1)) == 0 && is_among(to, MIRRORED, sizeof MIRRORED / sizeof *MIRRORED);
}
