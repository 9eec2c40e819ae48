/* One call of MPI's own collective, rooted at rank 0, to observe what an MPI library does with it.
 *
 *     call COLLECTIVE BYTES
 *
 * BYTES is the message size as the catalogue defines it for the collective. MPI_Pcontrol encloses the call. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

static void *zeros(size_t bytes) { return calloc(bytes, 1); }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    collwise_collective kind = argc == 3 ? workload_kind(argv[1]) : COLLWISE_COLLECTIVES;
    char *end = "";
    long bytes = argc == 3 ? strtol(argv[2], &end, 10) : -1;
    if (kind == COLLWISE_COLLECTIVES || bytes < 0 || *end != '\0') {
        fprintf(stderr, "usage: call COLLECTIVE BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    workload work;
    if (!workload_make(&work, kind, (size_t)bytes, 0, MPI_COMM_WORLD, (workload_memory){zeros, free})) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Pcontrol(1);
    workload_call_mpi(&work);
    MPI_Pcontrol(0);
    workload_free(&work);
    MPI_Finalize();
    return 0;
}
