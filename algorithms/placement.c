/* The processes that share a node or a socket, by MPI and the system; kept with the private communicator. */
#include "internal.h"

#include <stdlib.h>

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

static void release(void *value) {
    collwise_hierarchy *made = value;
    collwise_nodes *nodes = made->nodes;
    collwise_hierarchy_free(made);
    free(nodes);
}

static collwise_hierarchy *keep_hierarchy(MPI_Comm private, int label) {
    collwise_hierarchy *made = collwise_hierarchy_make(nodes_by_label(label, private), private);
    collwise_keep(private, COLLWISE_KEPT_HIERARCHY, made, release);
    return made;
}

collwise_hierarchy *collwise_hierarchy_of(MPI_Comm comm) {
    collwise_hierarchy *made = collwise_kept(comm, COLLWISE_KEPT_HIERARCHY);
    return made != NULL ? made : keep_hierarchy(comm, node_label(comm));
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
