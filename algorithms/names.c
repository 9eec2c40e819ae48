#include "collwise.h"

const char *const collwise_collective_names[COLLWISE_COLLECTIVES] = {
    [COLLWISE_BCAST] = "bcast",
    [COLLWISE_GATHER] = "gather",
    [COLLWISE_GATHERV] = "gatherv",
    [COLLWISE_SCATTER] = "scatter",
    [COLLWISE_SCATTERV] = "scatterv",
    [COLLWISE_ALLGATHER] = "allgather",
    [COLLWISE_ALLGATHERV] = "allgatherv",
    [COLLWISE_ALLTOALL] = "alltoall",
    [COLLWISE_ALLTOALLV] = "alltoallv",
    [COLLWISE_BARRIER] = "barrier",
    [COLLWISE_REDUCE] = "reduce",
    [COLLWISE_ALLREDUCE] = "allreduce",
    [COLLWISE_REDUCE_SCATTER] = "reduce_scatter",
    [COLLWISE_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
    [COLLWISE_SCAN] = "scan",
    [COLLWISE_EXSCAN] = "exscan",
};
