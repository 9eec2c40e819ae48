/* The state of a communicator, stored with it as an attribute. */
#include "interpose.h"
#include "keys.h"

#include <stdlib.h>

atomic_uint interpose_generation;

static int free_state(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    atomic_fetch_add(&interpose_generation, 1);
    free(value);
    return MPI_SUCCESS;
}

/* The largest number of the communicator's processes on one node. A collective call. */
static int max_per_node(MPI_Comm comm) {
    MPI_Comm node;
    int on_this_node, most;
    PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_size(node, &on_this_node);
    PMPI_Comm_free(&node);
    PMPI_Allreduce(&on_this_node, &most, 1, MPI_INT, MPI_MAX, comm);
    return most;
}

static int depends_on_nodes(const decision_table *table, int procs) {
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        if (decision_table_asks_nodes(table, kind, (uint64_t)procs)) {
            return 1;
        }
    }
    return 0;
}

/* A collective call where some rules depend on the processes per node. Processes that share the state all find the same
 * rows, and none has them before all of them have begun to look. */
static void find_rows(interpose_state *state, const decision_table *table, MPI_Comm comm) {
    if (table != NULL && !state->is_inter && state->procs > 1 && interpose_is_within_world(comm)) {
        uint64_t per_node = depends_on_nodes(table, state->procs) ? (uint64_t)max_per_node(comm) : 1;
        for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
            state->rows[kind] = decision_table_row(table, kind, (uint64_t)state->procs, per_node);
        }
    }
    state->has_rows = 1;
}

interpose_state *interpose_find_state(const interpose_settings *settings, MPI_Comm comm) {
    static collwise_key_place stored_key;
    int key = collwise_key(&stored_key, free_state), found;
    interpose_state *state, *earlier;
    if (comm == MPI_COMM_NULL || PMPI_Comm_get_attr(comm, key, &state, &found) != MPI_SUCCESS) {
        return NULL;
    }
    if (found) {
        return state;
    }
    state = calloc(1, sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    PMPI_Comm_test_inter(comm, &state->is_inter);
    PMPI_Comm_size(comm, &state->procs);
    state->group = (settings->counting & COUNT_FOR_REPORT) != 0 ? interpose_group_id(comm) : 0;
    /* If processes share the communicator object, another process may have set the attribute in the meantime. */
    PMPI_Comm_get_attr(comm, key, &earlier, &found);
    if (found) {
        free(state);
        return earlier;
    }
    PMPI_Comm_set_attr(comm, key, state);
    return state;
}

interpose_state *interpose_find_state_with_rows(const interpose_settings *settings, MPI_Comm comm) {
    interpose_state *state = interpose_find_state(settings, comm);
    if (state != NULL && !state->has_rows) {
        find_rows(state, settings->table, comm);
    }
    return state;
}
