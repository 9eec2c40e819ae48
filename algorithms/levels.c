/* Levels of communicators: the processes of each node, and one leader of each node; and the same for the sockets of a
 * node. */
#include "internal.h"

static collwise_levels levels_in(collwise_hierarchy *made, int root, MPI_Comm comm) {
    const collwise_nodes *nodes = made->nodes;
    int rank = collwise_rank_in(comm), node = nodes->node_of[rank], leader = collwise_leader_place(nodes, node, root);
    collwise_leaders *leaders = &made->leaders[nodes->place_of[root]];
    if (made->node == MPI_COMM_NULL) {
        MPI_Comm_split(comm, node, nodes->place_of[rank], &made->node);
    }
    if (!leaders->are_known) {
        leaders->are_known = 1;
        MPI_Comm_split(comm, nodes->place_of[rank] == leader ? 0 : MPI_UNDEFINED, node, &leaders->comm);
    }
    return (collwise_levels){.nodes = nodes,
                             .node = made->node,
                             .between = leaders->comm,
                             .own_node = node,
                             .leader = leader,
                             .top = nodes->node_of[root],
                             .is_leader = nodes->place_of[rank] == leader};
}

collwise_levels collwise_levels_of(int root, MPI_Comm comm) {
    return levels_in(collwise_hierarchy_of(comm), root, comm);
}

collwise_levels collwise_socket_levels_of(int root, MPI_Comm comm) {
    collwise_hierarchy *made = collwise_hierarchy_of(comm);
    collwise_levels levels = levels_in(made, root, comm);
    if (made->sockets == NULL) {
        made->sockets = collwise_hierarchy_make(collwise_sockets_on_node(made), levels.node);
    }
    return levels_in(made->sockets, levels.leader, levels.node);
}

const collwise_nodes *collwise_sockets_of_all(MPI_Comm comm) {
    collwise_hierarchy *made = collwise_hierarchy_of(comm);
    if (made->sockets_of_all == NULL) {
        made->sockets_of_all = collwise_sockets_on_nodes(made, comm);
    }
    return made->sockets_of_all;
}
