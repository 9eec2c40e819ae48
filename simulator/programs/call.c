/* One call of MPI's own collective, rooted at rank 0, to observe what an MPI library does with it.
 *
 *     call COLLECTIVE BYTES [ELEMENT_BYTES]
 *
 * BYTES is the message size as the catalogue defines it for the collective. ELEMENT_BYTES makes the message one of
 * doubles (8) or complex doubles (16), for collectives without lists of counts. MPI_Pcontrol encloses the call. */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

static void *zeros(size_t bytes) { return calloc(bytes, 1); }

/* The message as one of elements of this type. */
static void use_type(collwise_call *call, MPI_Datatype type, long bytes, int element_bytes) {
    call->send_type = call->receive_type = type;
    call->send_count = call->receive_count = (int)(bytes / element_bytes);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int given = argc == 3 || argc == 4;
    collwise_collective kind = given ? program_workload_kind(argv[1]) : COLLWISE_COLLECTIVES;
    char *end = "";
    long bytes = given ? strtol(argv[2], &end, 10) : -1;
    int element_bytes = argc == 4 ? atoi(argv[3]) : 0;
    int elements_known =
        element_bytes == 0 || ((element_bytes == 8 || element_bytes == 16) && bytes % element_bytes == 0);
    if (kind == COLLWISE_COLLECTIVES || bytes < 0 || *end != '\0' || !elements_known) {
        fprintf(stderr, "usage: call COLLECTIVE BYTES [ELEMENT_BYTES]; elements have 8 or 16 bytes\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    workload work;
    if (!program_workload_make(&work, kind, (size_t)bytes, 0, MPI_COMM_WORLD, (workload_memory){zeros, free})) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (element_bytes > 0) {
        use_type(&work.call, element_bytes == 8 ? MPI_DOUBLE : MPI_C_DOUBLE_COMPLEX, bytes, element_bytes);
    }
    MPI_Pcontrol(1);
    program_workload_call_mpi(work.kind, &work.call, NULL);
    MPI_Pcontrol(0);
    program_workload_free(&work);
    MPI_Finalize();
    return 0;
}
