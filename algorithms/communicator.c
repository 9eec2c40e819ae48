/* The private duplicate of a communicator, kept as an attribute, and with it, as attributes of its own, which
 * processes share a node, the buffers of mock-ups, and who observes the tasks of a call; a process's rank and place in
 * a tree.
 *
 * The only static here holds the attributes' keys. They are written once and never change, so simulated processes may
 * share them, too: all of them use the same keys. */
#include "mock_ups.h"
#include "tasks.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { OF_WORLD, OF_OTHERS, HIERARCHY, OBSERVER, BUFFERS, KEYS };

static int free_private(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    MPI_Comm *private = value;
    int status = MPI_Comm_free(private);
    free(private);
    return status;
}

static int free_hierarchy(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    collwise_hierarchy *made = value;
    collwise_nodes *nodes = made->nodes;
    collwise_hierarchy_free(made);
    free(nodes);
    return MPI_SUCCESS;
}

static int free_buffers(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    collwise_buffers_free(value);
    return MPI_SUCCESS;
}

static int attribute_key(int which) {
    static atomic_int keys[KEYS] = {MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID,
                                    MPI_KEYVAL_INVALID};
    MPI_Comm_delete_attr_function *const free_value[KEYS] = {free_private, free_private, free_hierarchy,
                                                             MPI_COMM_NULL_DELETE_FN, free_buffers};
    int known = atomic_load(&keys[which]);
    if (known != MPI_KEYVAL_INVALID) {
        return known;
    }
    int made;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_value[which], &made, NULL);
    int expected = MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(&keys[which], &expected, made)) {
        return made;
    }
    MPI_Comm_free_keyval(&made);
    return expected;
}

/* Simulated processes share one MPI_COMM_WORLD object with its attributes, but have their own objects of every other
 * communicator. The duplicate of MPI_COMM_WORLD is therefore an attribute of MPI_COMM_SELF, under a key of its own.
 * MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while communication is still possible. */
MPI_Comm collwise_private(MPI_Comm comm) {
    int is_world = comm == MPI_COMM_WORLD;
    MPI_Comm holder = is_world ? MPI_COMM_SELF : comm;
    int key = attribute_key(is_world ? OF_WORLD : OF_OTHERS);
    MPI_Comm *private;
    int found;
    MPI_Comm_get_attr(holder, key, &private, &found);
    if (!found) {
        private = collwise_allocate(sizeof *private, comm);
        MPI_Comm_dup(comm, private);
        MPI_Comm_set_errhandler(*private, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_set_attr(holder, key, private);
    }
    return *private;
}

/* A number that only the processes of this one's node have: their lowest rank. */
static int node_label(MPI_Comm comm) {
    int label = collwise_rank_in(comm);
    MPI_Comm node;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, label, MPI_INFO_NULL, &node);
    PMPI_Bcast(&label, 1, MPI_INT, 0, node); /* MPI_Bcast may be libcollwise's */
    MPI_Comm_free(&node);
    return label;
}

static collwise_nodes *nodes_by_label(int label, MPI_Comm comm) {
    int procs = collwise_size_of(comm);
    int *labels = collwise_allocate((size_t)procs * sizeof *labels, comm);
    /* SMPI's allgather has all P^2 messages under way at once, which takes it minutes for some hundred processes. */
    PMPI_Gather(&label, 1, MPI_INT, labels, 1, MPI_INT, 0, comm);
    PMPI_Bcast(labels, procs, MPI_INT, 0, comm);
    collwise_nodes *made = collwise_nodes_make(labels, procs, comm);
    free(labels);
    return made;
}

static collwise_hierarchy *keep_hierarchy(MPI_Comm private, int label) {
    collwise_hierarchy *made = collwise_hierarchy_make(nodes_by_label(label, private), private);
    MPI_Comm_set_attr(private, attribute_key(HIERARCHY), made);
    return made;
}

collwise_hierarchy *collwise_hierarchy_of(MPI_Comm comm) {
    collwise_hierarchy *made;
    int found;
    MPI_Comm_get_attr(comm, attribute_key(HIERARCHY), &made, &found);
    return found ? made : keep_hierarchy(comm, node_label(comm));
}

collwise_nodes *collwise_sockets_on_node(const collwise_hierarchy *of) {
    int label =
        of->is_placed ? of->socket : collwise_own_socket(collwise_rank_in(of->node), collwise_size_of(of->node));
    return nodes_by_label(label, of->node);
}

/* Sockets have labels by their numbers on their nodes, which have no more sockets than processes. */
collwise_nodes *collwise_sockets_on_nodes(const collwise_hierarchy *of, MPI_Comm comm) {
    int rank = collwise_rank_in(comm), first = of->nodes->first[of->nodes->node_of[rank]];
    return nodes_by_label(first + of->sockets->nodes->node_of[of->nodes->place_of[rank]], comm);
}

void collwise_place(MPI_Comm comm, int node, int socket) {
    collwise_hierarchy *made = keep_hierarchy(collwise_private(comm), node);
    made->is_placed = 1;
    made->socket = socket;
}

void collwise_run_tasks(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                        const collwise_observer *observer) {
    MPI_Comm private = collwise_private(call->comm);
    MPI_Comm_set_attr(private, attribute_key(OBSERVER), (void *)observer);
    collwise_run(algorithm, call, with);
    MPI_Comm_delete_attr(private, attribute_key(OBSERVER));
}

const collwise_observer *collwise_observer_of(MPI_Comm comm) {
    const collwise_observer *observer;
    int found;
    MPI_Comm_get_attr(comm, attribute_key(OBSERVER), &observer, &found);
    return found ? observer : NULL;
}

collwise_buffers *collwise_buffers_of(MPI_Comm comm) {
    collwise_buffers *made;
    int found;
    MPI_Comm_get_attr(comm, attribute_key(BUFFERS), &made, &found);
    if (!found) {
        made = collwise_buffers_make(comm);
        MPI_Comm_set_attr(comm, attribute_key(BUFFERS), made);
    }
    return made;
}

int collwise_rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int collwise_size_of(MPI_Comm comm) {
    int procs;
    MPI_Comm_size(comm, &procs);
    return procs;
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), fanout);
}
