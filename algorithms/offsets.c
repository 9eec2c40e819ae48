/* Equal blocks as a special case of blocks of any size. */
#include "internal.h"

size_t *collwise_equal_offsets(size_t block_bytes, MPI_Comm comm) {
    int procs;
    MPI_Comm_size(comm, &procs);
    size_t *offsets = collwise_allocate(((size_t)procs + 1) * sizeof *offsets, comm);
    for (int rank = 0; rank <= procs; rank++) {
        offsets[rank] = (size_t)rank * block_bytes;
    }
    return offsets;
}
