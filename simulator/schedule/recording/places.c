/* Nodes, sockets and their communicators, which are kept with the private communicator elsewhere. */
#include "recording.h"

#include <stdlib.h>

/* Processes with equal labels are together. The result belongs to no process. */
static collwise_nodes *together(const recording *to, int (*label_of)(const recording *to, int rank)) {
    int procs = to->made->procs, *labels = recording_checked(malloc((size_t)procs * sizeof *labels));
    for (int rank = 0; rank < procs; rank++) {
        labels[rank] = label_of(to, rank);
    }
    collwise_nodes *made = collwise_nodes_make(labels, procs, MPI_COMM_WORLD);
    free(labels);
    recording_disown(made);
    return made;
}

static int node_label(const recording *to, int rank) {
    return to->wanted->node_of == NULL ? rank : to->wanted->node_of[rank];
}

/* The lowest rank on the same node and socket. */
static int socket_label(const recording *to, int rank) {
    const collwise_nodes *nodes = to->nodes;
    const int32_t *socket_of = to->wanted->socket_of;
    const int *other = nodes->ranks + nodes->first[nodes->node_of[rank]];
    while (socket_of != NULL && socket_of[*other] != socket_of[rank]) {
        other++;
    }
    return *other;
}

static MPI_Comm communicator_of(recording *to, int size, const int *processes) {
    int number = recording_communicators_add(to->communicators, size, processes);
    if (number == 0) {
        recording_fail(to, "out of memory");
    }
    return number;
}

/* The communicator of the leaders who are at that place of their nodes, or last. */
static MPI_Comm make_leaders(recording *to, int place) {
    const collwise_nodes *nodes = to->nodes;
    int *leaders = recording_checked(malloc((size_t)nodes->nodes * sizeof *leaders));
    for (int node = 0; node < nodes->nodes; node++) {
        int last = collwise_node_size(nodes, node) - 1;
        leaders[node] = nodes->ranks[nodes->first[node] + (place < last ? place : last)];
    }
    MPI_Comm made = communicator_of(to, nodes->nodes, leaders);
    free(leaders);
    return made;
}

/* Gives a process the communicators that it would split with others: the recorder knows who belongs to them. */
static void know_communicators(recording *to, collwise_hierarchy *of) {
    const collwise_nodes *nodes = of->nodes;
    int rank = to->now.rank, own = nodes->node_of[rank], last = collwise_node_size(nodes, own) - 1;
    MPI_Comm *node = &to->levels[own], *leaders = to->levels + nodes->nodes;
    if (*node == MPI_COMM_NULL) {
        *node = communicator_of(to, last + 1, nodes->ranks + nodes->first[own]);
    }
    of->node = *node;
    for (int place = 0; place < nodes->largest; place++) {
        of->leaders[place].are_known = 1;
        if (nodes->place_of[rank] == (place < last ? place : last)) {
            leaders[place] = leaders[place] == MPI_COMM_NULL ? make_leaders(to, place) : leaders[place];
            of->leaders[place].comm = leaders[place];
        }
    }
}

collwise_hierarchy *collwise_hierarchy_of(MPI_Comm comm) {
    recording *to = recording_now;
    if (to->nodes == NULL) {
        to->nodes = together(to, node_label);
        to->levels =
            recording_checked(calloc((size_t)to->nodes->nodes + (size_t)to->nodes->largest, sizeof *to->levels));
    }
    if (to->now.hierarchy == NULL) {
        to->now.hierarchy = collwise_hierarchy_make(to->nodes, comm);
        recording_make_communicators(to);
        know_communicators(to, to->now.hierarchy);
    }
    return to->now.hierarchy;
}

collwise_nodes *collwise_sockets_on_node(const collwise_hierarchy *of) {
    const int32_t *socket_of = recording_now->wanted->socket_of;
    int procs = collwise_size_of(of->node), *labels = recording_checked(malloc((size_t)procs * sizeof *labels));
    for (int place = 0; place < procs; place++) {
        labels[place] = socket_of == NULL ? 0 : socket_of[recording_process_of(of->node, place)];
    }
    collwise_nodes *made = collwise_nodes_make(labels, procs, of->node);
    free(labels);
    return made;
}

collwise_nodes *collwise_sockets_on_nodes(const collwise_hierarchy *of, MPI_Comm comm) {
    recording *to = recording_now;
    (void)of, (void)comm;
    if (to->sockets == NULL) {
        to->sockets = together(to, socket_label);
    }
    return to->sockets;
}

void recording_forget_hierarchy(process *of) {
    if (of->hierarchy != NULL && of->hierarchy->sockets != NULL) {
        recording_free(of->hierarchy->sockets->nodes);
        recording_free(of->hierarchy->sockets);
    }
    recording_free(of->hierarchy);
    of->hierarchy = NULL;
}
