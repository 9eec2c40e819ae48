/* Nodes and sockets that processes of one machine are taken to be on. */
#include "verify.h"

const char *const verify_placement_names[] = {"", ", uneven nodes", ", cyclic placement", ", nodes of one process"};

/* A process's node. */
int verify_node_of(verify_placement placed, int rank, int procs) {
    int node = 0;
    switch (placed) {
    case VERIFY_UNEVEN:
        for (int first = 0; first + node < rank; first += node) {
            node++;
        }
        return node;
    case VERIFY_CYCLIC:
        return rank % ((procs + 2) / 3);
    default:
        return rank;
    }
}

/* A process's socket: on nodes of uneven sizes, sockets of 1, 2, 3 and so on; elsewhere by turns on two, and so on
 * every other node of uneven size. */
int verify_socket_of(verify_placement placed, int rank, int procs) {
    int node = verify_node_of(placed, rank, procs), place = 0;
    for (int other = 0; other < rank; other++) {
        place += verify_node_of(placed, other, procs) == node;
    }
    return placed == VERIFY_UNEVEN && node % 2 == 0 ? verify_node_of(VERIFY_UNEVEN, place, procs) : place % 2;
}
