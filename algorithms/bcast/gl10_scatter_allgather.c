/* MPI_Bcast as MPI_Scatter and MPI_Allgather (GL10), of a message that is padded to P equal blocks. */
#include "mock_ups.h"

void collwise_bcast_gl10_scatter_allgather(char *data, size_t bytes, int root, MPI_Comm comm,
                                           collwise_parameters with) {
    int at_root = collwise_rank_in(comm) == root;
    collwise_padded padded = collwise_padded_of(bytes, 1, comm);
    int block_bytes = (int)padded.block_bytes;
    (void)with;
    if (at_root) {
        collwise_pad(&padded, data);
    }
    PMPI_Scatter(padded.all, block_bytes, MPI_BYTE, padded.block, block_bytes, MPI_BYTE, root, comm);
    PMPI_Allgather(padded.block, block_bytes, MPI_BYTE, padded.all, block_bytes, MPI_BYTE, comm);
    if (!at_root) {
        collwise_copy(data, padded.all, bytes);
    }
}
