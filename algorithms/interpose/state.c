/* What holds for all calls on a communicator, kept on it as an attribute. */
#include "interpose.h"

#include <stdlib.h>

atomic_uint interpose_generation;

int interpose_key(atomic_int *key, MPI_Comm_delete_attr_function *free_value) {
    int known = atomic_load(key);
    if (known != MPI_KEYVAL_INVALID) {
        return known;
    }
    int made;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_value, &made, NULL);
    int expected = MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(key, &expected, made)) {
        return made;
    }
    PMPI_Comm_free_keyval(&made);
    return expected;
}

static int free_state(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    atomic_fetch_add(&interpose_generation, 1);
    free(value);
    return MPI_SUCCESS;
}

/* The most processes of the communicator that share a node; a collective call. */
static int most_per_node(MPI_Comm comm) {
    MPI_Comm node;
    int here, most;
    PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    PMPI_Comm_size(node, &here);
    PMPI_Comm_free(&node);
    PMPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, comm);
    return most;
}

static int asks_nodes(const decision_table *table, int procs) {
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        if (decision_table_asks_nodes(table, kind, (uint64_t)procs)) {
            return 1;
        }
    }
    return 0;
}

static void fill(interpose_state *state, const decision_table *table, MPI_Comm comm) {
    PMPI_Comm_test_inter(comm, &state->is_inter);
    PMPI_Comm_size(comm, &state->procs);
    if (table == NULL || state->is_inter || state->procs == 1) {
        return;
    }
    uint64_t per_node = asks_nodes(table, state->procs) ? (uint64_t)most_per_node(comm) : 1;
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        state->rows[kind] = decision_table_row(table, kind, (uint64_t)state->procs, per_node);
    }
}

const interpose_state *interpose_find_state(const interpose_settings *settings, MPI_Comm comm) {
    static atomic_int kept = MPI_KEYVAL_INVALID;
    int key = interpose_key(&kept, free_state), found;
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
    fill(state, settings->table, comm);
    /* Where processes share the communicator object, another one may have been here meanwhile. */
    PMPI_Comm_get_attr(comm, key, &earlier, &found);
    if (found) {
        free(state);
        return earlier;
    }
    PMPI_Comm_set_attr(comm, key, state);
    return state;
}
