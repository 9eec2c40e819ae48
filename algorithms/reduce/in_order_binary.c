/* Up an in-order binary tree to the last process, which passes the result on to the root if that is another:
 *     T = 2 (ceil(log2(P + 1)) + n_s - 2) (alpha + m_s beta + m_s gamma) + alpha + m beta */
#include "internal.h"

void collwise_reduce_in_order_binary(const char *data, char *result, size_t elements, const collwise_operation *op,
                                     int root, MPI_Comm comm, collwise_parameters with) {
    int procs;
    MPI_Comm_size(comm, &procs);
    collwise_tree tree = collwise_tree_of(COLLWISE_IN_ORDER_BINARY, procs - 1, comm, 0);
    collwise_tree_reduce(data, result, elements, op, &tree, root, with.segment_bytes, comm);
}
