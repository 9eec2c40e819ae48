/* Algorithms whose processes all do the same, each relative to itself: one of them is recorded for all. */
#include "recording.h"

#include <string.h>

static const struct {
    collwise_collective kind;
    const char *algorithm;
} ALIKE[] = {
    {COLLWISE_ALLGATHER, "bruck"},     {COLLWISE_ALLGATHER, "ring"},
    {COLLWISE_ALLGATHER, "sparbit"},   {COLLWISE_ALLGATHERV, "bruck"},
    {COLLWISE_ALLGATHERV, "ring"},     {COLLWISE_ALLTOALL, "bruck"},
    {COLLWISE_ALLTOALL, "linear"},     {COLLWISE_ALLTOALL, "linear_sync"},
    {COLLWISE_ALLTOALL, "pairwise"},   {COLLWISE_ALLTOALLV, "linear"},
    {COLLWISE_ALLTOALLV, "pairwise"},  {COLLWISE_BARRIER, "bruck"},
    {COLLWISE_ALLREDUCE, "ring"},      {COLLWISE_ALLREDUCE, "segmented_ring"},
    {COLLWISE_REDUCE_SCATTER, "ring"}, {COLLWISE_REDUCE_SCATTER_BLOCK, "ring"},
};

/* Whether each process has a block of the same size of what is reduced. */
static int has_equal_blocks(const recording *to) {
    size_t elements = to->wanted->message_bytes / to->op.element_bytes;
    int is_cut = to->algorithm->kind == COLLWISE_ALLREDUCE || to->algorithm->kind == COLLWISE_REDUCE_SCATTER;
    return !is_cut || elements % (size_t)to->made->procs == 0;
}

int recording_is_of_alike(const recording *to) {
    const char *name = to->algorithm == NULL ? NULL : to->algorithm->name;
    if (name == NULL || to->processes_alone > 0 || strcmp(to->wanted->experiment, "collective") != 0) {
        return 0;
    }
    size_t i = 0, count = sizeof ALIKE / sizeof *ALIKE;
    while (i < count && (ALIKE[i].kind != to->algorithm->kind || strcmp(ALIKE[i].algorithm, name) != 0)) {
        i++;
    }
    return i < count && has_equal_blocks(to);
}
