/* What the algorithms need besides MPI (internal.h, tasks.h): scratch memory, copies, reductions, and what is kept with
 * the private communicator. MPI's own collectives and memory that processes share cannot be recorded. */
#include "mock_ups.h"
#include "recording.h"

#include <stdlib.h>
#include <string.h>

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    allocation *made = recording_checked(malloc(sizeof *made + bytes)), **first = &recording_now->now->allocations;
    (void)comm;
    *made = (allocation){.next = *first, .link = first};
    if (made->next != NULL) {
        made->next->link = &made->next;
    }
    *first = made;
    return made->memory;
}

static allocation *unlinked(void *memory) {
    allocation *of = (allocation *)((char *)memory - offsetof(allocation, memory));
    if (of->link != NULL) {
        *of->link = of->next;
    }
    if (of->link != NULL && of->next != NULL) {
        of->next->link = of->link;
    }
    of->link = NULL;
    return of;
}

void recording_free(void *memory) {
    if (memory != NULL) {
        free(unlinked(memory));
    }
}

void recording_free_all(process *of) {
    while (of->allocations != NULL) {
        recording_free(of->allocations->memory);
    }
}

size_t *collwise_sizes(size_t count, MPI_Comm comm) { return collwise_allocate(count * sizeof(size_t), comm); }

void collwise_sizes_free(size_t *sizes) { recording_free(sizes); }

/* A buffer for so many bytes. What lies beyond its end would be taken for other data, or for the program's own. */
static char *payload_for(int which, size_t bytes) {
    const recording *to = recording_now;
    if (bytes > PAYLOAD_BUFFER_BYTES) {
        const collwise_algorithm *by = to->algorithm;
        recording_fail(recording_now,
                       "process %d of %s %s needs %zu bytes of memory, and a recording has room for 1 EiB",
                       to->now->rank, by == NULL ? "experiment" : by->collective,
                       by == NULL ? to->wanted->experiment : by->name, bytes);
    }
    return recording_payload(which);
}

char *collwise_scratch(size_t bytes, MPI_Comm comm) {
    (void)comm;
    if (bytes > 0) {
        recording_add(SCHEDULE_ALLOCATE, 0, recording_size_number(recording_now, bytes));
    }
    return payload_for(3, bytes);
}

void collwise_scratch_free(char *scratch) { (void)scratch; }

void collwise_copy(char *to, const char *from, size_t bytes) {
    (void)to, (void)from;
    recording_copy(bytes);
}

void collwise_clear(char *data, size_t bytes) {
    (void)data;
    recording_copy(bytes);
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

char *collwise_message_memory(size_t bytes, MPI_Comm comm) {
    collwise_memory *extra = &recording_now->made->extra;
    (void)comm;
    extra->message_bytes = larger(extra->message_bytes, bytes);
    return payload_for(2, bytes);
}

int *collwise_integer_memory(size_t count, MPI_Comm comm) {
    collwise_memory *extra = &recording_now->made->extra;
    (void)comm;
    extra->integer_bytes = larger(extra->integer_bytes, count * sizeof(int));
    recording_now->now->integers = recording_checked(realloc(recording_now->now->integers, count * sizeof(int)));
    return recording_now->now->integers;
}

void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements) {
    (void)left, (void)right;
    if (elements > 0) {
        recording_add(SCHEDULE_REDUCE, 0, recording_size_number(recording_now, elements * op->element_bytes));
        recording_reduce(elements * op->element_bytes);
    }
}

void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements) {
    collwise_combine(op, right, left, elements);
}

void collwise_combine_received(const collwise_operation *op, char *data, char *received, size_t elements,
                               int sender_is_lower) {
    (void)sender_is_lower;
    collwise_combine(op, received, data, elements);
}

int collwise_has_library(void) { return 1; }

static _Noreturn void refuse_library(void) {
    recording_fail(recording_now, "MPI's own collectives between nodes cannot be recorded");
}

void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root) {
    (void)to, (void)data, (void)bytes, (void)root;
    refuse_library();
}

void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root) {
    (void)to, (void)sum, (void)elements, (void)op, (void)root;
    refuse_library();
}

void collwise_add_library_gather(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                 int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_scatter(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                  int root) {
    (void)to, (void)blocks, (void)counts, (void)displacements, (void)root;
    refuse_library();
}

void collwise_add_library_allgather(collwise_rounds *to, char *all, const int *counts, const int *displacements) {
    (void)to, (void)all, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_alltoall(collwise_rounds *to, const char *send, char *receive, const int *counts,
                                   const int *displacements) {
    (void)to, (void)send, (void)receive, (void)counts, (void)displacements;
    refuse_library();
}

void collwise_add_library_barrier(collwise_rounds *to) {
    (void)to;
    refuse_library();
}

static _Noreturn void refuse_window(void) {
    recording_fail(recording_now,
                   "shared and one-sided memory of a node cannot be recorded: 'within' has to be 0 or 3");
}

int collwise_window_takes(size_t element_bytes) {
    (void)element_bytes;
    return 1;
}

collwise_window *collwise_window_of(const collwise_levels *levels, collwise_within form, MPI_Comm comm) {
    (void)levels, (void)form, (void)comm;
    refuse_window();
}

void collwise_add_window_bcast(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                               char *data, size_t bytes) {
    (void)to, (void)state, (void)window, (void)root, (void)data, (void)bytes;
    refuse_window();
}

void collwise_add_window_reduce(collwise_rounds *to, collwise_transfer *state, collwise_window *window, int root,
                                char *sum, size_t elements, const collwise_operation *op) {
    (void)to, (void)state, (void)window, (void)root, (void)sum, (void)elements, (void)op;
    refuse_window();
}

/* A sequence of tasks begins by asking for it. */
const collwise_observer *collwise_observer_of(MPI_Comm comm) {
    (void)comm;
    recording_begin_arrivals(recording_now);
    return recording_now->has_tasks ? &recording_now->tasks : NULL;
}

int collwise_rank_in(MPI_Comm comm) { return recording_rank_in(comm); }

int collwise_size_of(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return recording_now->made->procs;
    }
    recording_rank_in(comm);
    return recording_communicators_size(recording_now->communicators, comm);
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), degree);
}

/* Processes with equal labels are together. The result belongs to no process. */
static collwise_nodes *together(const recording *to, int (*label_of)(const recording *to, int rank)) {
    int procs = to->made->procs, *labels = recording_checked(malloc((size_t)procs * sizeof *labels));
    for (int rank = 0; rank < procs; rank++) {
        labels[rank] = label_of(to, rank);
    }
    collwise_nodes *made = collwise_nodes_make(labels, procs, MPI_COMM_WORLD);
    free(labels);
    unlinked(made);
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

/* Whether processes take what comes first, and then begin in the order that splits leave behind: messages of one
 * instant leave a node in it. */
static int begin_after_splits(const recording *to) {
    const char *name = to->algorithm == NULL ? "" : to->algorithm->name;
    int takes_first = strncmp(name, "tasks_", 6) == 0 || strncmp(name, "multi_leader_", 13) == 0;
    return takes_first && to->processes_alone == 0;
}

/* Gives a process the communicators that it would split with others: the recorder knows who belongs to them. */
static void know_communicators(recording *to, collwise_hierarchy *of) {
    const collwise_nodes *nodes = of->nodes;
    int rank = to->now->rank, own = nodes->node_of[rank], last = collwise_node_size(nodes, own) - 1;
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
    if (to->now->hierarchy == NULL) {
        to->now->hierarchy = collwise_hierarchy_make(to->nodes, comm);
        if (!begin_after_splits(to)) {
            recording_make_communicators(to);
            know_communicators(to, to->now->hierarchy);
        }
    }
    return to->now->hierarchy;
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
