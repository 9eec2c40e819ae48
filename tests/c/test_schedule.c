/* Every algorithm recorded and played, for what the sanitizers see: process counts up to 17 (12 under sanitizers),
 * models, ports with and without token buckets, those with finite buffers, eager messages and messages that wait for
 * their receives. */
#include "batch.h"
#include "collwise.h"
#include "engine.h"
#include "play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages have ten segments, the last one shorter, and more packets than buffers, windows and send buffers hold. */
enum {
    MAX_PROCS = 17,
    MANY_PROCS = 12,
    GROUP = 4,
    MAX_GROUPS = (MAX_PROCS + GROUP - 1) / GROUP,
    MESSAGE_BYTES = 14000,
    PART_BYTES = 1434
};

typedef enum { MODEL, OVER_PORTS, WITH_BUFFERS, KINDS } network_kind;

/* Tables of one class of nodes in which every entry is the same. */
static double *filled(size_t count, double value) {
    double *table = malloc((count + 1) * sizeof *table);
    for (size_t i = 0; table != NULL && i <= count; i++) {
        table[i] = value;
    }
    return table;
}

/* Groups of nodes, each with a cable to a switch in the middle: its links up and down are 2 group and 2 group + 1. */
typedef struct {
    int64_t first[MAX_GROUPS * MAX_GROUPS + 1];
    int32_t links[2 * MAX_GROUPS * MAX_GROUPS];
    double seconds[MAX_GROUPS * MAX_GROUPS];
} routes;

static void fill_routes(routes *filled, int groups) {
    int64_t count = 0;
    for (int one = 0; one < groups; one++) {
        for (int other = 0; other < groups; other++) {
            filled->first[one * groups + other] = count;
            filled->seconds[one * groups + other] = one != other ? 1e-6 : 0;
            if (one != other) {
                filled->links[count++] = 2 * one;
                filled->links[count++] = 2 * other + 1;
            }
        }
    }
    filled->first[groups * groups] = count;
}

/* Whether a schedule has that result in a batch. */
static int plays_alike_in_a_batch(const schedule *made, const schedule_network *network,
                                  const schedule_result *expected) {
    uint32_t *columns = malloc((made->size_count + 1) * sizeof *columns);
    for (size_t i = 0; columns != NULL && i < made->size_count; i++) {
        columns[i] = (uint32_t)i;
    }
    const uint32_t *column_of = columns;
    double seconds = 0, within = 0;
    char problem[200] = "";
    const double most = INFINITY, less = expected->seconds / 2;
    schedule_play_batch(1, &made, &column_of, network, made->size_count, &most, &seconds, problem, sizeof problem);
    if (!expected->failed) {
        schedule_play_batch(1, &made, &column_of, network, made->size_count, &less, &within, problem, sizeof problem);
    }
    free(columns);
    return expected->failed ? strcmp(problem, expected->problem) == 0
                            : seconds == expected->seconds && (within == seconds || isinf(within));
}

/* The result of playing a schedule, which has to be the same again, and on two equal models in one pass. */
static schedule_result result_on(const schedule *made, const schedule_network *network, network_kind kind) {
    const schedule_network *twice[] = {network, network};
    schedule_result result = schedule_play(made, network, 0, NULL, NULL, NULL), others[2];
    int sets = kind == MODEL ? 2 : 1;
    schedule_play_many(made, twice, (size_t)sets, 0, NULL, others);
    for (int i = 0; i < sets; i++) {
        if (strcmp(others[i].problem, result.problem) != 0 || others[i].seconds != result.seconds) {
            fprintf(stderr, "%.17g s %s, then %.17g s %s\n", result.seconds, result.problem, others[i].seconds,
                    others[i].problem);
            result = (schedule_result){.failed = 1, .problem = "another result"};
        }
    }
    for (int rank = 0; rank < made->procs && !result.failed; rank++) {
        if (schedule_own_seconds(made, network, rank) > result.seconds * (1 + 1e-12)) {
            result = (schedule_result){.failed = 1, .problem = "a process takes longer on its own"};
        }
    }
    if (!plays_alike_in_a_batch(made, network, &result)) {
        result = (schedule_result){.failed = 1, .problem = "another result in a batch"};
    }
    return result;
}

/* Plays a schedule where nodes have `per_node` processes, of three the last on a socket of its own; the buffers hold
 * two packets. The beginning of a schedule is played for so many seconds. */
static schedule_result played_on(const schedule *made, int per_node, network_kind kind, schedule_protocol protocol,
                                 double max_seconds) {
    size_t sizes = made->size_count;
    int nodes = (made->procs + per_node - 1) / per_node, groups = (nodes + GROUP - 1) / GROUP;
    int32_t node_of[MAX_PROCS], class_of[MAX_PROCS] = {0}, group_of[MAX_PROCS], socket_of[MAX_PROCS];
    for (int i = 0; i < MAX_PROCS; i++) {
        node_of[i] = i / per_node;
        socket_of[i] = i % per_node / 2;
        group_of[i] = i / GROUP;
    }
    uint8_t *protocols = malloc(sizes + 1);
    double *nothing = filled(sizes, 0), *overhead = filled(sizes, 1e-6), *latency = filled(sizes, 1e-5);
    double *transfer = filled(sizes, 0), *load = filled(sizes, 0), *links = filled(2 * (size_t)groups, 2e8);
    double *factor = filled(sizes, 1);
    routes between;
    fill_routes(&between, groups);
    double rate = 1e8, burst = per_node == 1 ? 1000 : 0;
    for (size_t i = 0; i < sizes; i++) {
        protocols[i] = (uint8_t)protocol;
        load[i] = (double)made->sizes[i];
        transfer[i] = load[i] / rate;
    }
    schedule_network network = {.nodes = nodes,
                                .classes = 1,
                                .node_of = node_of,
                                .class_of = class_of,
                                .send_seconds = overhead,
                                .start_seconds = overhead,
                                .receive_seconds = overhead,
                                .local_seconds = {overhead, nothing, nothing, overhead},
                                .protocol = protocols,
                                .handshake_seconds = latency,
                                .answer_seconds = latency,
                                .latency_seconds = latency,
                                .transfer_seconds = transfer,
                                .gap_seconds = transfer,
                                .receive_gap_seconds = transfer,
                                .local_latency_seconds = nothing,
                                .local_transfer_seconds = transfer,
                                .flag_seconds = latency,
                                .sockets = per_node > 2 ? 2 : 0,
                                .socket_of = socket_of,
                                .cross_latency_seconds = latency,
                                .cross_transfer_seconds = transfer,
                                .cross_rate = rate};
    if (kind != MODEL) {
        network.out_rate = network.in_rate = &rate;
        network.burst_bytes = &burst;
        network.load_bytes = load;
        network.acknowledgement_share = 0.05;
        network.send_buffer_bytes = per_node > 1 ? 5000 : 0;
        network.memory_rate = per_node > 2 ? 1e9 : 0;
        network.memory_share_of_ports = 0.5;
        network.switches = groups;
        network.links = 2 * groups;
        network.switch_of = group_of;
        network.link_rate = links;
        network.route_first = between.first;
        network.route_links = between.links;
        network.route_seconds = between.seconds;
        network.latency_factor = network.handshake_factor = network.answer_factor = factor;
    }
    if (kind == WITH_BUFFERS) {
        network.packet_bytes = 1000;
        network.buffer_bytes = 2500;
        network.retransmission_seconds = 0.01;
        network.initial_window_packets = 4;
    }
    schedule_result result =
        made->is_begin ? schedule_play_within(made, &network, 0, NULL, max_seconds) : result_on(made, &network, kind);
    free(protocols);
    free(nothing);
    free(overhead);
    free(latency);
    free(transfer);
    free(load);
    free(links);
    free(factor);
    return result;
}

/* True if the words are the same, apart from the numbers of sizes, of which each recording has its own order. */
static int has_same_words(const schedule_program *one, const schedule_program *other, size_t length) {
    size_t at = 0;
    while (at < length && one->words[at] >> 32 == other->words[at] >> 32) {
        at++;
    }
    return at == length;
}

/* True if the root and the process after it have the same programs when they are recorded alone. */
static int is_alike_alone(const schedule_case *wanted, int can_be_alone) {
    char problem[200];
    schedule *alone = schedule_record_root(wanted, problem, sizeof problem);
    schedule *made = schedule_record(wanted, problem, sizeof problem);
    int is_alike = made != NULL && (alone != NULL || !can_be_alone);
    for (int i = 0; is_alike && alone != NULL && i < 2; i++) {
        int rank = (wanted->root + i) % wanted->procs;
        const schedule_program *whole = &made->programs[made->program_of[rank]];
        const schedule_program *one = &alone->programs[alone->program_of[rank]];
        is_alike = one->length == whole->length && has_same_words(one, whole, one->length);
    }
    schedule_free(alone);
    schedule_free(made);
    return is_alike;
}

/* Whether a program is another one, or its beginning if it is cut. */
static int is_beginning(const schedule *begin, const schedule_program *one, const schedule *made,
                        const schedule_program *whole) {
    int is_alike = one->length <= whole->length && (one->is_cut || one->length == whole->length) &&
                   has_same_words(one, whole, one->length);
    for (size_t at = 0; is_alike && at < one->length; at++) {
        schedule_kind kind = schedule_kind_of(one->words[at]);
        int has_size = schedule_is_message(kind) || schedule_is_local(kind);
        uint32_t size = schedule_size_of(one->words[at]), expected = schedule_size_of(whole->words[at]);
        is_alike = has_size ? begin->sizes[size] == made->sizes[expected] : size == expected;
    }
    return is_alike;
}

/* Whether beginnings of a schedule are those of its programs, and are said to take longer only if the whole does. */
static int is_alike_at_first(const schedule_case *wanted, const schedule *made) {
    char problem[200];
    int is_alike = 1;
    for (uint64_t words = 1; is_alike && words < 100; words = 3 * words + 4) {
        schedule *begin = schedule_record_begin(wanted, words, problem, sizeof problem);
        is_alike = begin != NULL;
        for (int rank = 0; is_alike && rank < wanted->procs; rank++) {
            is_alike = is_beginning(begin, &begin->programs[begin->program_of[rank]], made,
                                    &made->programs[made->program_of[rank]]);
        }
        for (network_kind kind = MODEL; is_alike && begin->is_begin && kind < KINDS; kind++) {
            double seconds = played_on(made, 3, kind, SCHEDULE_EAGER, INFINITY).seconds;
            for (double share = 0.01; is_alike && share < 1.1; share *= 3) {
                schedule_result found = played_on(begin, 3, kind, SCHEDULE_EAGER, share * seconds);
                is_alike = !found.failed && found.is_longer != found.is_open && !(found.is_longer && share > 1);
                is_alike = is_alike && (found.is_longer || found.seconds <= share * seconds);
            }
        }
        schedule_free(begin);
    }
    return is_alike;
}

/* Whether every process does the same in both, of which one may be mirrored. */
static int do_alike(const schedule *one, const schedule *other) {
    int is_alike = one->size_count == other->size_count && one->messages == other->messages;
    for (int rank = 0; is_alike && rank < one->procs; rank++) {
        const schedule_program *here = &one->programs[one->program_of[rank]];
        const schedule_program *there = &other->programs[other->program_of[rank]];
        is_alike = here->length == there->length && here->sources.count == there->sources.count;
        for (size_t i = 0; is_alike && i < here->length; i++) {
            schedule_kind kind = schedule_kind_of(here->words[i]);
            uint32_t peer = schedule_peer_of(here->words[i]), size = schedule_size_of(here->words[i]);
            if (schedule_is_message(kind)) {
                uint32_t process = (uint32_t)schedule_peer(one, rank, peer);
                peer = (process + (uint32_t)one->procs - (uint32_t)rank) % (uint32_t)one->procs;
            }
            is_alike = there->words[i] == schedule_make_word(kind, peer, size);
        }
    }
    for (size_t i = 0; is_alike && i < one->size_count; i++) {
        is_alike = one->sizes[i] == other->sizes[i];
    }
    return is_alike;
}

/* Whether a recording is that of all processes, as an algorithm of another name has, of which none stands for others.
 */
static int is_of_all(const schedule_case *case_of, const collwise_algorithm *algorithm) {
    const uint64_t sizes[] = {case_of->message_bytes,
                              24 * (uint64_t)case_of->procs,
                              8 * (uint64_t)case_of->procs + 8,
                              (uint64_t)case_of->procs,
                              1,
                              0};
    collwise_algorithm other = *algorithm;
    char problem[200];
    int is_alike = 1;
    other.name = "other";
    for (size_t i = 0; is_alike && i < sizeof sizes / sizeof *sizes; i++) {
        schedule_case wanted = *case_of;
        wanted.message_bytes = sizes[i];
        schedule *made = schedule_record(&wanted, problem, sizeof problem);
        schedule *all = schedule_record_algorithm(&wanted, &other, problem, sizeof problem);
        is_alike = made != NULL && all != NULL && made->bytes == all->bytes &&
                   (made->is_mirrored ? do_alike(made, all) : schedule_equal(made, all));
        schedule_free(made);
        schedule_free(all);
    }
    return is_alike;
}

/* A library that runs the catalogue's first algorithm. */
static int first_algorithm(const char *collective, int procs, uint64_t message_bytes, schedule_choice *chosen) {
    (void)message_bytes;
    for (const collwise_algorithm *one = collwise_registry; one->collective != NULL; one++) {
        if (strcmp(one->collective, collective) == 0 && one->guideline == NULL && !one->real_mpi_only &&
            collwise_procs_objection(one, procs) == NULL) {
            snprintf(chosen->algorithm, sizeof chosen->algorithm, "%s", one->name);
            return 1;
        }
    }
    return 0;
}

/* Algorithms by node are recorded on nodes of 4 processes, by turns, those with three levels on 2 sockets. */
static int check(const collwise_algorithm *algorithm, int procs, int count) {
    int cuts = algorithm->part_parameter != NULL;
    int32_t nodes[MAX_PROCS], sockets[MAX_PROCS];
    for (int rank = 0; rank < procs; rank++) {
        nodes[rank] = rank % ((procs + GROUP - 1) / GROUP);
        sockets[rank] = rank % 2;
    }
    schedule_case wanted = {.experiment = "collective",
                            .collective = algorithm->collective,
                            .algorithm = algorithm->name,
                            .procs = procs,
                            .root = procs - 1,
                            .message_bytes = MESSAGE_BYTES,
                            .part_bytes = cuts ? PART_BYTES : 0,
                            .count = count,
                            .node_of = nodes,
                            .socket_of = sockets,
                            .library = first_algorithm};
    char problem[200];
    schedule *made = schedule_record(&wanted, problem, sizeof problem);
    if (made == NULL) {
        fprintf(stderr, "%s %s, P = %d: %s\n", algorithm->collective, algorithm->name, procs, problem);
        return 1;
    }
    int is_regular = strstr(algorithm->collective, "v") == NULL;
    int failures = !is_alike_alone(&wanted, count != COLLWISE_WITHIN_SOCKETS && is_regular);
    if (failures > 0) {
        fprintf(stderr, "%s %s, P = %d: other programs alone\n", algorithm->collective, algorithm->name, procs);
    }
    if (!algorithm->by_node && algorithm->guideline == NULL && !is_of_all(&wanted, algorithm)) {
        fprintf(stderr, "%s %s, P = %d: not the programs of all processes\n", algorithm->collective, algorithm->name,
                procs);
        failures++;
    }
    if ((procs == 8 || procs == 13) && !is_alike_at_first(&wanted, made)) {
        fprintf(stderr, "%s %s, P = %d: another beginning\n", algorithm->collective, algorithm->name, procs);
        failures++;
    }
    /* 1 to 3 processes on a node: with many processes, which take longest, one of these by turns. */
    int all = procs < MANY_PROCS, first = all ? 1 : 1 + procs % 3;
    for (int per_node = first; per_node <= (all ? 3 : first); per_node++) {
        for (network_kind kind = MODEL; kind < KINDS; kind++) {
            for (schedule_protocol protocol = SCHEDULE_EAGER; protocol <= SCHEDULE_DEFERRED; protocol++) {
                schedule_result result = played_on(made, per_node, kind, protocol, INFINITY);
                if (result.failed || !(result.seconds >= 0 && (procs == 1 || result.seconds > 0))) {
                    fprintf(stderr, "%s %s, P = %d, %d on a node, kind %d, protocol %d: %g s %s\n",
                            algorithm->collective, algorithm->name, procs, per_node, (int)kind, (int)protocol,
                            result.seconds, result.problem);
                    failures++;
                }
            }
        }
    }
    schedule_free(made);
    return failures;
}

/* Wrong cases are refused with a reason. */
static int check_refusals(void) {
    const schedule_case wrong[] = {
        {"collective", "bcast", "none", 4, 0, 1, 0, 0, 0, 0, NULL, NULL, NULL},
        {"collective", "bcast", "chain", 0, 0, 1, 0, 0, 0, 0, NULL, NULL, NULL},
        {"collective", "bcast", "chain", 4, 4, 1, 0, 0, 0, 0, NULL, NULL, NULL},
        {"none", "bcast", "chain", 4, 0, 1, 0, 0, 0, 0, NULL, NULL, NULL},
        {"collective", "allgather", "neighbor_exchange", 3, 0, 1, 0, 0, 0, 0, NULL, NULL, NULL},
        {"collective", "bcast", "chain", 4, 0, (uint64_t)1 << 31, 0, 0, 0, 0, NULL, NULL, NULL},
        {"collective", "bcast", "k_chain", 4, 0, 1, 0, 0, 0, -1, NULL, NULL, NULL},
        {"collective", "bcast", "knomial", 4, 0, 1, 0, 0, 0, 1, NULL, NULL, NULL},
        {"collective", "bcast", "tasks_chain", 4, 0, 1, 0, 0, 0, 9, NULL, NULL, NULL}};
    int failures = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char problem[200] = "";
        schedule *made = schedule_record(&wrong[i], problem, sizeof problem);
        if (made != NULL || strlen(problem) == 0) {
            fprintf(stderr, "case %zu is not refused\n", i);
            schedule_free(made);
            failures++;
        }
    }
    return failures;
}

/* Memory of a process that is longer than all that the program has is recorded like any other, up to a limit. */
static int check_memory(void) {
    enum { PROCS = 1 << 19 };
    schedule_case wanted = {.experiment = "collective",
                            .collective = "alltoall",
                            .algorithm = "tasks_pairwise",
                            .procs = 4096,
                            .message_bytes = (uint64_t)1 << 30};
    char problem[200] = "";
    schedule *made = schedule_record_root(&wanted, problem, sizeof problem);
    int failures = made == NULL || made->messages == 0;
    schedule_free(made);
    int32_t *node_of = calloc(PROCS, sizeof *node_of);
    wanted.algorithm = "hierarchical";
    wanted.procs = PROCS;
    wanted.message_bytes = (uint64_t)1 << 23;
    wanted.node_of = node_of;
    made = schedule_record(&wanted, problem, sizeof problem);
    failures += made != NULL || strstr(problem, "alltoall hierarchical needs 2305843009213693952 bytes") == NULL;
    schedule_free(made);
    free(node_of);
    if (failures > 0) {
        fprintf(stderr, "long memory: %s\n", problem);
    }
    return failures;
}

/* A play that needs more memory than the system has fails, and keeps what it had. */
static int check_growth(void) {
    static size_t room = (size_t)1 << 50;
    play *all = calloc(1, sizeof *all);
    if (all != NULL && setjmp(all->give_up) == 0) {
        play_grown(all, NULL, room, &room, sizeof(message));
    }
    int has_failed = all != NULL && all->result.failed && strstr(all->result.problem, "than is free") != NULL;
    if (!has_failed || room != (size_t)1 << 50) {
        fprintf(stderr, "memory grew beyond what there is\n");
    }
    free(all);
    return !has_failed || room != (size_t)1 << 50;
}

static int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static void wait_for_ever(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                          collwise_parameters with) {
    (void)op, (void)with;
    MPI_Recv(data, (int)elements, MPI_BYTE, 1 - rank_in(comm), 0, comm, MPI_STATUS_IGNORE);
    MPI_Send(data, (int)elements, MPI_BYTE, 1 - rank_in(comm), 0, comm);
}

static void send_without_receive(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                 collwise_parameters with) {
    (void)op, (void)with;
    if (rank_in(comm) == 0) {
        MPI_Send(data, (int)elements, MPI_BYTE, 1, 0, comm);
    }
}

static void send_twice(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                       collwise_parameters with) {
    (void)op, (void)with;
    if (rank_in(comm) == 0) {
        MPI_Send(data, (int)elements, MPI_BYTE, 1, 0, comm);
        MPI_Send(data, (int)elements, MPI_BYTE, 1, 0, comm);
    } else {
        MPI_Recv(data, (int)elements, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    }
}

static void receive_less(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                         collwise_parameters with) {
    (void)op, (void)with;
    if (rank_in(comm) == 0) {
        MPI_Send(data, (int)elements, MPI_BYTE, 1, 0, comm);
    } else {
        MPI_Recv(data, (int)elements - 1, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    }
}

/* What cannot be played is reported on every network, for the same reason. */
static int check_failures(void) {
    static const struct {
        collwise_allreduce_function *function;
        const char *problem;
    } wrong[] = {{wait_for_ever, "wait for ever"},
                 {send_without_receive, "has no counterpart"},
                 {send_twice, "has no counterpart"},
                 {receive_less, "of which process 1 receives"}};
    int failures = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        collwise_algorithm algorithm = {
            .kind = COLLWISE_ALLREDUCE, .collective = "allreduce", .name = "", .allreduce = wrong[i].function};
        schedule_case wanted = {.experiment = "collective",
                                .collective = "allreduce",
                                .algorithm = "",
                                .procs = 2,
                                .message_bytes = MESSAGE_BYTES};
        char problem[200] = "";
        schedule *made = schedule_record_algorithm(&wanted, &algorithm, problem, sizeof problem);
        for (network_kind kind = MODEL; made != NULL && kind <= OVER_PORTS; kind++) {
            schedule_result result = played_on(made, 1, kind, SCHEDULE_EAGER, INFINITY);
            if (!result.failed || strstr(result.problem, wrong[i].problem) == NULL) {
                fprintf(stderr, "wrong algorithm %zu, kind %d: %s\n", i, (int)kind, result.problem);
                failures++;
            }
        }
        failures += made == NULL;
        schedule_free(made);
    }
    return failures;
}

#ifdef __SANITIZE_ADDRESS__
/* Sanitizers make everything ten times as long. */
static const int counts[] = {1, 2, 3, 5, 6, 8, 12};
#else
static const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, MAX_PROCS};
#endif

int main(void) {
    int failures = check_refusals() + check_memory() + check_growth() + check_failures();
    for (const collwise_algorithm *algorithm = collwise_registry; algorithm->collective != NULL; algorithm++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            int is_recorded = !algorithm->real_mpi_only && collwise_procs_objection(algorithm, counts[i]) == NULL;
            int has_forms = algorithm->count_parameter != NULL && strcmp(algorithm->count_parameter, "within") == 0;
            int uses_memory = algorithm->kind == COLLWISE_BCAST || algorithm->kind == COLLWISE_REDUCE ||
                              algorithm->kind == COLLWISE_ALLREDUCE;
            for (int within = 0; is_recorded && within < (has_forms ? COLLWISE_WITHIN_FORMS : 1); within++) {
                int is_message = within == COLLWISE_WITHIN_MESSAGES || within == COLLWISE_WITHIN_SOCKETS;
                failures += is_message || uses_memory ? check(algorithm, counts[i], within) : 0;
            }
        }
    }
    return failures > 0;
}
