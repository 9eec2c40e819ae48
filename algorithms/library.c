/* MPI's own non-blocking collectives as operations between nodes. The collectives that libcollwise replaces are not
 * among them; their names with a P are those of any MPI. */
#include "tasks.h"

void collwise_start_library_bcast(collwise_requests *requests, char *data, size_t bytes, int root) {
    PMPI_Ibcast(data, (int)bytes, MPI_BYTE, root, requests->comm, collwise_next_request(requests));
}

void collwise_start_library_reduce(collwise_requests *requests, char *sum, size_t elements,
                                   const collwise_operation *op, int root) {
    int at_root = collwise_rank_in(requests->comm) == root;
    PMPI_Ireduce(at_root ? MPI_IN_PLACE : sum, at_root ? sum : NULL, (int)elements, op->type, op->op, root,
                 requests->comm, collwise_next_request(requests));
}
