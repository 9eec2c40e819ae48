/* Lists of the processes that share a node or socket, communicators made of them, and blocks in the order of nodes. */
#include "internal.h"

#include <stdlib.h>

typedef struct {
    int label, rank;
} labelled;

static int compare(const void *left, const void *right) {
    const labelled *one = left, *other = right;
    if (one->label != other->label) {
        return one->label < other->label ? -1 : 1;
    }
    return (one->rank > other->rank) - (one->rank < other->rank);
}

/* Each rank's lowest rank of the same label. */
static void find_lowest(const int *labels, int procs, int *lowest, MPI_Comm comm) {
    labelled *sorted = collwise_allocate((size_t)procs * sizeof *sorted, comm);
    for (int rank = 0; rank < procs; rank++) {
        sorted[rank] = (labelled){labels[rank], rank};
    }
    qsort(sorted, (size_t)procs, sizeof *sorted, compare);
    for (int i = 0; i < procs; i++) {
        int rank = sorted[i].rank, continues = i > 0 && sorted[i - 1].label == sorted[i].label;
        lowest[rank] = continues ? lowest[sorted[i - 1].rank] : rank;
    }
    free(sorted);
}

collwise_nodes *collwise_nodes_make(const int *labels, int procs, MPI_Comm comm) {
    size_t count = (size_t)procs;
    collwise_nodes *made = collwise_allocate(sizeof *made + (4 * count + 1) * sizeof *made->memory, comm);
    *made = (collwise_nodes){.in_order = 1,
                             .node_of = made->memory,
                             .place_of = made->memory + count,
                             .ranks = made->memory + 2 * count,
                             .first = made->memory + 3 * count};
    int *lowest = made->ranks, *first = made->first; /* `ranks` serves as scratch memory until it is filled */
    find_lowest(labels, procs, lowest, comm);
    for (int rank = 0; rank <= procs; rank++) {
        first[rank] = 0;
    }
    for (int rank = 0; rank < procs; rank++) {
        int is_lowest = lowest[rank] == rank, node = is_lowest ? made->nodes++ : made->node_of[lowest[rank]];
        made->in_order = made->in_order && (is_lowest || node == made->node_of[rank - 1]);
        made->node_of[rank] = node;
        made->place_of[rank] = first[node + 1]++;
    }
    for (int node = 0; node < made->nodes; node++) {
        made->largest = first[node + 1] > made->largest ? first[node + 1] : made->largest;
        first[node + 1] += first[node];
    }
    for (int rank = 0; rank < procs; rank++) {
        made->ranks[first[made->node_of[rank]] + made->place_of[rank]] = rank;
    }
    return made;
}

int collwise_node_size(const collwise_nodes *nodes, int node) { return nodes->first[node + 1] - nodes->first[node]; }

int collwise_leader_place(const collwise_nodes *nodes, int node, int root) {
    int place = nodes->place_of[root], last = collwise_node_size(nodes, node) - 1;
    return place < last ? place : last;
}

collwise_hierarchy *collwise_hierarchy_make(collwise_nodes *nodes, MPI_Comm comm) {
    size_t most = (size_t)nodes->largest;
    collwise_hierarchy *made = collwise_allocate(sizeof *made + most * sizeof *made->leaders, comm);
    *made = (collwise_hierarchy){.nodes = nodes, .node = MPI_COMM_NULL};
    for (size_t place = 0; place < most; place++) {
        made->leaders[place] = (collwise_leaders){.comm = MPI_COMM_NULL};
    }
    return made;
}

static void free_communicator(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL) {
        MPI_Comm_free(comm);
    }
}

void collwise_hierarchy_free(collwise_hierarchy *made) {
    for (int place = 0; place < made->nodes->largest; place++) {
        free_communicator(&made->leaders[place].comm);
    }
    for (int form = 0; form < COLLWISE_WITHIN_FORMS; form++) {
        if (made->windows[form] != NULL) {
            made->free_window(made->windows[form]);
        }
    }
    if (made->sockets != NULL) {
        collwise_nodes *sockets = made->sockets->nodes;
        collwise_hierarchy_free(made->sockets);
        free(sockets);
    }
    free(made->sockets_of_all);
    free_communicator(&made->node);
    free(made);
}

/* --- Blocks in the order of nodes --------------------------------------------------------------------------------- */

int collwise_are_equal(const collwise_nodes *nodes) {
    return nodes->first[nodes->nodes] == nodes->nodes * nodes->largest;
}

size_t *collwise_node_offsets(const collwise_nodes *nodes, size_t block_bytes, MPI_Comm comm) {
    size_t *offsets = collwise_allocate(((size_t)nodes->nodes + 1) * sizeof *offsets, comm);
    for (int node = 0; node <= nodes->nodes; node++) {
        offsets[node] = (size_t)nodes->first[node] * block_bytes;
    }
    return offsets;
}

void collwise_put_by_node(char *by_node, const char *by_rank, size_t block_bytes, const collwise_nodes *nodes) {
    for (int i = 0; i < nodes->first[nodes->nodes]; i++) {
        collwise_copy(by_node + (size_t)i * block_bytes, by_rank + (size_t)nodes->ranks[i] * block_bytes, block_bytes);
    }
}

void collwise_put_by_rank(char *by_rank, const char *by_node, size_t block_bytes, const collwise_nodes *nodes) {
    for (int i = 0; i < nodes->first[nodes->nodes]; i++) {
        collwise_copy(by_rank + (size_t)nodes->ranks[i] * block_bytes, by_node + (size_t)i * block_bytes, block_bytes);
    }
}

static size_t row_of(const int *rows, int place) { return (size_t)(rows == NULL ? place : rows[place]); }

void collwise_put_by_receiving_node(char *packed, const char *gathered, size_t block_bytes, int on_node,
                                    const int *rows, const collwise_nodes *nodes) {
    size_t procs = (size_t)nodes->first[nodes->nodes];
    for (int node = 0; node < nodes->nodes; node++) {
        for (int sender = 0; sender < on_node; sender++) {
            for (int i = nodes->first[node]; i < nodes->first[node + 1]; i++, packed += block_bytes) {
                size_t place = row_of(rows, sender) * procs + (size_t)nodes->ranks[i];
                collwise_copy(packed, gathered + place * block_bytes, block_bytes);
            }
        }
    }
}

void collwise_put_by_receiver(char *sorted, const char *packed, size_t block_bytes, int on_node, const int *rows,
                              const collwise_nodes *nodes) {
    size_t procs = (size_t)nodes->first[nodes->nodes];
    for (size_t i = 0; i < procs; i++) {
        for (int receiver = 0; receiver < on_node; receiver++, packed += block_bytes) {
            size_t place = row_of(rows, receiver) * procs + (size_t)nodes->ranks[i];
            collwise_copy(sorted + place * block_bytes, packed, block_bytes);
        }
    }
}
