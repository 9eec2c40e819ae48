/* MPI_Allgather as MPI_Gather and MPI_Bcast (GL1), in the receive buffer. */
#include "mock_ups.h"

void collwise_allgather_gl1_gather_bcast(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with) {
    int procs = collwise_size_of(comm), rank = collwise_rank_in(comm), bytes = (int)block_bytes;
    (void)with;
    PMPI_Gather(rank == 0 ? MPI_IN_PLACE : all + (size_t)rank * block_bytes, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0,
                comm);
    PMPI_Bcast(all, procs * bytes, MPI_BYTE, 0, comm);
}
