#include "tasks.h"

void collwise_bcast_tasks_binary(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with) {
    collwise_task_bcast(COLLWISE_BETWEEN_BINARY, data, bytes, root, comm, with);
}
