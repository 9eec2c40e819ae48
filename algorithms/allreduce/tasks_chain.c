#include "tasks.h"

void collwise_allreduce_tasks_chain(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                    collwise_parameters with) {
    collwise_task_allreduce(COLLWISE_BETWEEN_CHAIN, data, elements, op, comm, with);
}
