/* Simulated processes, which share environment and memory. */
#include "interpose.h"
#include "keys.h"

#include <errno.h>
#include <simgrid/engine.h>
#include <string.h>

/* The first one to get here reads for all, in no simulated time. The others do not try again, even after a failure, so
 * that its warning is printed once. */
interpose_part interpose_own_part(void) {
    static atomic_flag done = ATOMIC_FLAG_INIT;
    return atomic_flag_test_and_set(&done) ? INTERPOSE_SHARES : INTERPOSE_READS;
}

void interpose_share(void *data, int bytes) {
    (void)data;
    (void)bytes;
}

int interpose_owns_settings(void) { return 0; }

static int counts_key(void) {
    static collwise_key_place key;
    return collwise_key(&key, MPI_COMM_NULL_DELETE_FN);
}

interpose_counts *interpose_own_counts(void) {
    interpose_counts *own;
    int found;
    PMPI_Comm_get_attr(MPI_COMM_SELF, counts_key(), &own, &found);
    return found ? own : NULL;
}

void interpose_store_counts(interpose_counts *own) {
    if (own == NULL) {
        PMPI_Comm_delete_attr(MPI_COMM_SELF, counts_key());
    } else {
        PMPI_Comm_set_attr(MPI_COMM_SELF, counts_key(), own);
    }
}

/* MPI_Wtime would add simulated time. */
double interpose_seconds(void) { return simgrid_get_clock(); }

int interpose_has_run_mpi(void) { return strcmp(program_invocation_short_name, "smpimain") == 0; }

int interpose_is_within_world(MPI_Comm comm) { return comm != MPI_COMM_NULL; }
