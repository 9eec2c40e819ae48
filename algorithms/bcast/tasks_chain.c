#include "tasks.h"

void collwise_bcast_tasks_chain(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_CHAIN, data, bytes, root, comm, with);
}
