/* Processes of their own memory and environment. */
#include "interpose.h"

#include <time.h>

interpose_part interpose_own_part(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0 ? INTERPOSE_READS : INTERPOSE_GETS;
}

void interpose_share(void *data, int bytes) { PMPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }

int interpose_owns_settings(void) { return 1; }

static interpose_counts *stored;

interpose_counts *interpose_own_counts(void) { return stored; }
void interpose_store_counts(interpose_counts *own) { stored = own; }

double interpose_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int interpose_has_run_mpi(void) {
    int initialised;
    PMPI_Initialized(&initialised);
    return initialised;
}

int interpose_is_within_world(MPI_Comm comm) {
    MPI_Group world, own, others;
    int result, count = 0;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &own);
    PMPI_Group_compare(own, world, &result);
    /* The difference takes time with the square of P, and most communicators are that of all processes. */
    if (result == MPI_UNEQUAL) {
        PMPI_Group_difference(own, world, &others);
        PMPI_Group_size(others, &count);
        PMPI_Group_free(&others);
    }
    PMPI_Group_free(&world);
    PMPI_Group_free(&own);
    return count == 0;
}
