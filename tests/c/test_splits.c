/* Algorithms that split communicators by node, recorded: an allreduce whose nodes' leaders exchange messages, one in
 * which all processes do, each with those of its local rank, splits of what was split, and sizes that processes of a
 * node tell one another. Checked are the members, that only messages of the right kind leave a node, their number, and
 * that all of them are received, for processes placed by blocks, cyclically and by a list. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCS = 257, MESSAGE_BYTES = 8192 };

static int failures;

/* Of the case that is being recorded: the placement, and the algorithm between the nodes. */
static int32_t node_of[MAX_PROCS], local_ranks[MAX_PROCS];
static int procs;
static const char *between_nodes;

static void expect(int is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "P = %d, %s between nodes: %s\n", procs, between_nodes, what);
        failures++;
    }
}

/* How many processes below that one are on its node. */
static int local_rank(int process) { return local_ranks[process]; }

static int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

static int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static void reduce(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm) {
    if (size_of(comm) > 1) {
        collwise_find("reduce", "binomial")->reduce(data, data, elements, op, 0, comm, (collwise_parameters){0});
    }
}

static void allreduce(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm) {
    if (size_of(comm) > 1) {
        collwise_find("allreduce", between_nodes)->allreduce(data, elements, op, comm, (collwise_parameters){0});
    }
}

static void bcast(char *data, size_t bytes, MPI_Comm comm) {
    if (size_of(comm) > 1) {
        collwise_find("bcast", "binomial")->bcast(data, bytes, 0, comm, (collwise_parameters){0});
    }
}

static void by_leaders(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                       collwise_parameters with) {
    MPI_Comm node, leaders;
    (void)with;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    expect(rank_in(node) == local_rank(rank_in(comm)), "rank on the node");
    MPI_Comm_split(comm, rank_in(node) == 0 ? 0 : MPI_UNDEFINED, 0, &leaders);
    expect((leaders == MPI_COMM_NULL) == (rank_in(node) > 0), "leaders");
    reduce(data, elements, op, node);
    if (leaders != MPI_COMM_NULL) {
        allreduce(data, elements, op, leaders);
        MPI_Comm_free(&leaders);
    }
    bcast(data, elements * op->element_bytes, node);
    MPI_Comm_free(&node);
    expect(node == MPI_COMM_NULL && leaders == MPI_COMM_NULL, "free");
}

static void by_local_ranks(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                           collwise_parameters with) {
    MPI_Comm node, peers;
    (void)with;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_split(comm, rank_in(node), 0, &peers);
    allreduce(data, elements, op, peers);
    allreduce(data, elements, op, node);
}

/* Backwards, and the halves of the nodes, with a message in a ring in each. */
static void by_halves(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                      collwise_parameters with) {
    MPI_Comm backwards, node, half;
    (void)with, (void)op;
    MPI_Comm_split(comm, 7, -rank_in(comm), &backwards);
    expect(rank_in(backwards) == procs - 1 - rank_in(comm), "order by key");
    MPI_Comm_split_type(backwards, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    expect(size_of(node) - 1 - rank_in(node) == local_rank(rank_in(comm)), "order of equal keys");
    int is_second = 2 * rank_in(node) >= size_of(node);
    MPI_Comm_split(node, is_second, 0, &half);
    expect(size_of(half) == (is_second ? size_of(node) / 2 : (size_of(node) + 1) / 2), "halves");
    int size = size_of(half), rank = rank_in(half), count = (int)elements;
    if (size > 1) {
        MPI_Sendrecv(data, count, MPI_BYTE, (rank + 1) % size, 1, data, count, MPI_BYTE, (rank + size - 1) % size, 1,
                     half, MPI_STATUS_IGNORE);
    }
}

/* The last process of a node tells the first how many bytes it sends it. */
static void by_sizes(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                     collwise_parameters with) {
    MPI_Comm node;
    (void)elements, (void)op, (void)with;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int last = size_of(node) - 1, bytes = 100 + rank_in(comm);
    if (last > 0 && rank_in(node) == last) {
        MPI_Send(&bytes, sizeof bytes, MPI_BYTE, 0, 1, node);
        MPI_Send(data, bytes, MPI_BYTE, 0, 1, node);
    } else if (last > 0 && rank_in(node) == 0) {
        MPI_Recv(&bytes, sizeof bytes, MPI_BYTE, last, 1, node, MPI_STATUS_IGNORE);
        expect(bytes > 100 + rank_in(comm) && local_ranks[bytes - 100] == last, "a size that was sent");
        MPI_Recv(data, bytes, MPI_BYTE, last, 1, node, MPI_STATUS_IGNORE);
    }
}

static void all_but_the_second(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                               collwise_parameters with) {
    MPI_Comm part;
    (void)data, (void)elements, (void)op, (void)with;
    if (rank_in(comm) != 1) {
        MPI_Comm_split(comm, 0, 0, &part);
    }
}

static void without_being_a_member(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                   collwise_parameters with) {
    MPI_Comm part;
    (void)data, (void)elements, (void)op, (void)with;
    MPI_Comm_split(comm, rank_in(comm) == 1 ? MPI_UNDEFINED : 0, 0, &part);
    rank_in(part);
}

static collwise_algorithm algorithm_of(collwise_allreduce_function *function) {
    return (collwise_algorithm){
        .kind = COLLWISE_ALLREDUCE, .collective = "allreduce", .name = "", .allreduce = function};
}

static schedule *record(collwise_allreduce_function *function, char *problem, size_t problem_bytes) {
    collwise_algorithm algorithm = algorithm_of(function);
    schedule_case wanted = {.experiment = "collective",
                            .collective = "allreduce",
                            .algorithm = "",
                            .procs = procs,
                            .message_bytes = MESSAGE_BYTES,
                            .node_of = node_of};
    return schedule_record_algorithm(&wanted, &algorithm, problem, problem_bytes);
}

/* --- What is checked ---------------------------------------------------------------------------------------------- */

/* A message that leaves a node must be between processes of the same local rank, which is 0 if only leaders send. */
static void check_messages_between_nodes(const schedule *made, int only_leaders, int may_leave) {
    for (int rank = 0; rank < procs; rank++) {
        const schedule_program *program = &made->programs[made->program_of[rank]];
        for (size_t i = 0; i < program->length; i++) {
            schedule_kind kind = schedule_kind_of(program->words[i]);
            if (!schedule_is_message(kind)) {
                continue;
            }
            int peer = (rank + (int)schedule_peer_of(program->words[i])) % procs;
            if (node_of[peer] != node_of[rank]) {
                expect(may_leave, "a message leaves its node");
                expect(local_rank(rank) == local_rank(peer), "a message between nodes and local ranks");
                expect(!only_leaders || local_rank(rank) == 0, "a message between nodes that is not between leaders");
            }
        }
    }
}

/* All messages arrive, also if every send waits for its receive. */
static void check_play(const schedule *made) {
    enum { MAX_SIZES = 1000 };
    static double nothing[MAX_SIZES], latency[MAX_SIZES];
    static uint8_t protocols[MAX_SIZES];
    expect(made->size_count <= MAX_SIZES, "sizes");
    int32_t each[MAX_PROCS], class_of[MAX_PROCS] = {0};
    for (int i = 0; i < MAX_SIZES; i++) {
        latency[i] = 1;
    }
    for (int rank = 0; rank < procs; rank++) {
        each[rank] = rank;
    }
    for (int protocol = SCHEDULE_EAGER; protocol <= SCHEDULE_RENDEZVOUS; protocol++) {
        memset(protocols, protocol, sizeof protocols);
        schedule_network network = {.nodes = procs,
                                    .classes = 1,
                                    .node_of = each,
                                    .class_of = class_of,
                                    .send_seconds = nothing,
                                    .start_seconds = nothing,
                                    .receive_seconds = nothing,
                                    .local_seconds = {nothing, nothing, nothing, nothing},
                                    .protocol = protocols,
                                    .handshake_seconds = nothing,
                                    .answer_seconds = nothing,
                                    .latency_seconds = latency,
                                    .transfer_seconds = nothing,
                                    .gap_seconds = nothing,
                                    .receive_gap_seconds = nothing,
                                    .local_latency_seconds = nothing,
                                    .local_transfer_seconds = nothing};
        schedule_result result = schedule_play(made, &network, 0, NULL, NULL, NULL);
        expect(!result.failed, result.problem);
    }
}

/* Of the algorithm between the nodes among so many processes. */
static uint64_t messages_among(int members) {
    char problem[200];
    schedule_case wanted = {.experiment = "collective",
                            .collective = "allreduce",
                            .algorithm = between_nodes,
                            .procs = members,
                            .message_bytes = MESSAGE_BYTES};
    schedule *made = members == 0 ? NULL : schedule_record(&wanted, problem, sizeof problem);
    uint64_t messages = made == NULL ? 0 : made->messages;
    schedule_free(made);
    return messages;
}

/* What an algorithm's schedule must be; returns its number of distinct programs. */
static size_t check_schedule(collwise_allreduce_function *function, uint64_t messages, int only_leaders,
                             int may_leave) {
    char problem[200] = "";
    schedule *made = record(function, problem, sizeof problem);
    expect(made != NULL, problem);
    if (made == NULL) {
        return 0;
    }
    expect(made->messages == messages, "number of messages");
    check_messages_between_nodes(made, only_leaders, may_leave);
    check_play(made);
    size_t programs = made->program_count;
    schedule_free(made);
    return programs;
}

/* All algorithms with the present placement; returns the number of distinct programs of the first. */
static size_t check(void) {
    int of_node[MAX_PROCS] = {0}, of_local_rank[MAX_PROCS] = {0};
    for (int rank = 0; rank < procs; rank++) {
        local_ranks[rank] = of_node[node_of[rank]]++;
        of_local_rank[local_ranks[rank]]++;
    }
    uint64_t messages = 0, halves = 0, sizes = 0;
    for (int i = 0; i < procs; i++) {
        messages += messages_among(of_node[i]) + messages_among(of_local_rank[i]);
        sizes += of_node[i] > 1 ? 2 : 0;
        int first = (of_node[i] + 1) / 2, second = of_node[i] / 2;
        halves += (uint64_t)((first > 1 ? first : 0) + (second > 1 ? second : 0));
    }
    check_schedule(by_local_ranks, messages, 0, 1);
    check_schedule(by_halves, halves, 0, 0);
    check_schedule(by_sizes, sizes, 0, 0);
    int nodes = of_local_rank[0];
    return check_schedule(by_leaders, 2 * (uint64_t)(procs - nodes) + messages_among(nodes), 1, 1);
}

static void check_placements(void) {
    for (int per_node = 1; per_node <= 8; per_node += per_node == 1 ? 2 : 5) {
        int nodes = (procs + per_node - 1) / per_node;
        uint32_t chance = 1;
        for (int rank = 0; rank < procs; rank++) {
            node_of[rank] = rank / per_node;
        }
        check();
        for (int rank = 0; rank < procs; rank++) {
            node_of[rank] = rank % nodes;
        }
        check();
        for (int rank = 0; rank < procs; rank++) {
            chance = chance * 1664525 + 1013904223;
            node_of[rank] = (int32_t)(chance >> 16) % nodes;
        }
        check();
    }
}

/* Leaders of nodes of equal size do the same in a ring, and so do all processes of one local rank. */
static void check_sharing(void) {
    procs = 256;
    between_nodes = "ring";
    for (int rank = 0; rank < procs; rank++) {
        node_of[rank] = rank / 4;
    }
    expect(check() == 4, "a program for each local rank");
}

static void check_refusal(collwise_allreduce_function *function, const char *reason) {
    char problem[200] = "";
    schedule *made = record(function, problem, sizeof problem);
    expect(made == NULL && strstr(problem, reason) != NULL, problem);
    schedule_free(made);
}

int main(void) {
    static const char *const algorithms[] = {"recursive_doubling", "ring", "rabenseifner"};
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        between_nodes = algorithms[i];
        for (procs = 2; procs <= MAX_PROCS; procs += procs < 20 ? 1 : procs < 255 ? 47 : 1) {
            check_placements();
        }
    }
    check_sharing();
    procs = 4;
    check_refusal(all_but_the_second, "do not split a communicator with it");
    check_refusal(without_being_a_member, "to which it does not belong");
    node_of[2] = -1;
    check_refusal(by_leaders, "negative number");
    return failures > 0;
}
