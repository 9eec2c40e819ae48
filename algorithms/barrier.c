/* Dissemination: in round k every process signals the one 2^k ahead and waits for the one 2^k behind. */
#include "internal.h"

void collwise_barrier(MPI_Comm user_comm) {
    MPI_Comm comm = collwise_private(user_comm);
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    for (int distance = 1; distance < procs; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % procs, COLLWISE_TAG, NULL, 0, MPI_BYTE,
                     (rank - distance + procs) % procs, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
    }
}
