/* Processes and their ranks in communicators. */
#include "recording.h"

void recording_make_communicators(recording *to) {
    if (to->communicators == NULL) {
        to->communicators = recording_checked(recording_communicators_make(to->made->procs));
    }
}

/* A member's rank among all processes. */
int recording_process_of(MPI_Comm comm, int rank) {
    if (comm == MPI_COMM_WORLD) {
        return rank;
    }
    int size = recording_communicators_size(recording_now->communicators, comm);
    if (rank < 0 || rank >= size) {
        recording_fail(recording_now, "process %d names rank %d of a communicator of %d processes",
                       recording_now->now.rank, rank, size);
    }
    return recording_communicators_member(recording_now->communicators, comm, rank);
}

int recording_rank_in(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return recording_now->now.rank;
    }
    int is_one = recording_communicators_size(recording_now->communicators, comm) > 0;
    int rank = is_one ? recording_communicators_rank(recording_now->communicators, comm, recording_now->now.rank) : -1;
    if (rank < 0) {
        recording_fail(recording_now, "process %d uses a communicator to which it does not belong",
                       recording_now->now.rank);
    }
    return rank;
}

int recording_size_of(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return recording_now->made->procs;
    }
    recording_rank_in(comm);
    return recording_communicators_size(recording_now->communicators, comm);
}
