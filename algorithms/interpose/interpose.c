/* The functions that programs get in place of MPI's own: each asks for the algorithm of its call, runs it, or passes
 * the call on to PMPI. */
#include "interpose.h"

#include <stdint.h>

/* What is to become of a call: an algorithm of ours, or the reason why MPI's own runs. */
typedef struct {
    const collwise_algorithm *algorithm;
    collwise_parameters with;
    const char *reason;
    int size_bits;
} verdict;

#ifdef SMPI_SHARED_MALLOC

/* Simulated processes may share a thread, so nothing is remembered here. */
static inline const interpose_state *state_of(const interpose_settings *settings, MPI_Comm comm) {
    return interpose_find_state(settings, comm);
}

#else

/* The communicators that this thread has used lately. An entry holds until any state is freed. */
enum { REMEMBERED = 8 };

typedef struct {
    MPI_Comm comm;
    unsigned generation;
    const interpose_state *state;
} remembered_state;

static _Thread_local __attribute__((tls_model("initial-exec"))) remembered_state remembered[REMEMBERED];

static __attribute__((noinline)) const interpose_state *look_up_state(const interpose_settings *settings, MPI_Comm comm,
                                                                      remembered_state *entry) {
    const interpose_state *state = interpose_find_state(settings, comm);
    if (state != NULL) {
        *entry = (remembered_state){comm, atomic_load(&interpose_generation), state};
    }
    return state;
}

static inline const interpose_state *state_of(const interpose_settings *settings, MPI_Comm comm) {
    uintptr_t handle = (uintptr_t)comm;
    remembered_state *entry = &remembered[(handle ^ handle >> 4 ^ handle >> 8) % REMEMBERED];
    unsigned generation = atomic_load_explicit(&interpose_generation, memory_order_acquire);
    if (entry->state != NULL && entry->comm == comm && entry->generation == generation) {
        return entry->state;
    }
    return look_up_state(settings, comm, entry);
}

#endif

static int bit_length(uint64_t value) { return value == 0 ? 0 : 64 - __builtin_clzll(value); }

static verdict mpis_own(const char *reason, int size_bits) {
    return (verdict){.reason = reason, .size_bits = size_bits};
}

static verdict judge(const interpose_state *state, collwise_collective kind, const collwise_call *call) {
    uint64_t bytes;
    if (state != NULL && state->is_inter) {
        return mpis_own("an intercommunicator", INTERPOSE_NO_SIZE);
    }
    if (state == NULL || !interpose_message_bytes(kind, call, state->procs, &bytes)) {
        return mpis_own("arguments for MPI to judge", INTERPOSE_NO_SIZE);
    }
    if (state->procs == 1) {
        return mpis_own("one process", bit_length(bytes));
    }
    const decision_row *row = state->rows[kind];
    const decision_choice *choice = row == NULL ? NULL : decision_row_choice(row, bytes);
    if (choice == NULL || choice->algorithm == DECISION_DEFAULT) {
        return mpis_own(choice == NULL ? "no rule" : "the rule says default", bit_length(bytes));
    }
    if (!interpose_arguments_hold(kind, call, state->procs)) {
        return mpis_own("arguments for MPI to judge", INTERPOSE_NO_SIZE);
    }
    const collwise_algorithm *algorithm = &collwise_registry[choice->algorithm];
    const char *objection = collwise_objection(algorithm, call);
    if (objection != NULL) {
        return mpis_own(objection, bit_length(bytes));
    }
    return (verdict){algorithm, {choice->segment_bytes, choice->fanout, choice->limit_bytes}, NULL, bit_length(bytes)};
}

static __attribute__((noinline)) int judge_and_run(const interpose_settings *settings, const interpose_state *state,
                                                   collwise_collective kind, const collwise_call *call) {
    verdict found = judge(state, kind, call);
    if (settings->watch != 0) {
        const char *name = found.algorithm == NULL ? NULL : found.algorithm->name;
        interpose_count(settings, kind, name, found.reason, found.size_bits, call->comm);
    }
    if (found.algorithm == NULL) {
        return 0;
    }
    collwise_run(found.algorithm, call, found.with);
    return 1;
}

/* Runs the call if an algorithm of ours is to; else it is PMPI's. */
static __attribute__((noinline)) int ran(collwise_collective kind, const collwise_call *call) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    return settings != NULL && judge_and_run(settings, state_of(settings, call->comm), kind, call);
}

/* What most calls of most programs pay for is the look here: whether any rule that is not MPI's own may be for the
 * call. The row with such rules, or NULL; where calls are watched, all of them are looked at closer. */
static inline const decision_row *row_of(collwise_collective kind, MPI_Comm comm, int *is_watched) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    *is_watched = settings != NULL && settings->watch != 0;
    if (settings == NULL || *is_watched || (settings->kinds >> kind & 1) == 0) {
        return NULL;
    }
    const interpose_state *state = state_of(settings, comm);
    return state == NULL ? NULL : state->rows[kind];
}

/* Whether it is clear already that MPI's own runs. */
static inline int passes(collwise_collective kind, MPI_Comm comm) {
    int is_watched;
    return row_of(kind, comm, &is_watched) == NULL && !is_watched;
}

/* The same where the message is `count` elements: also if it is shorter than any that is not MPI's own. */
static inline int passes_sized(collwise_collective kind, int count, MPI_Datatype type, MPI_Comm comm) {
    int is_watched;
    const decision_row *row = row_of(kind, comm, &is_watched);
    if (row == NULL || count < 0 || type == MPI_DATATYPE_NULL) {
        return !is_watched;
    }
    MPI_Count bytes = count * interpose_element_bytes(type);
    return bytes < 0 || (uint64_t)bytes < row->ours_from;
}

static int began(int status) {
    if (status == MPI_SUCCESS) {
        interpose_note_init();
        interpose_set_up();
    }
    return status;
}

int MPI_Init(int *argc, char ***argv) { return began(PMPI_Init(argc, argv)); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return began(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void) {
    interpose_wind_up();
    return PMPI_Finalize();
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    if (passes_sized(COLLWISE_BCAST, count, type, comm)) {
        return PMPI_Bcast(buffer, count, type, root, comm);
    }
    collwise_call call = {.receive = buffer, .receive_count = count, .receive_type = type, .root = root, .comm = comm};
    return ran(COLLWISE_BCAST, &call) ? MPI_SUCCESS : PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
               MPI_Datatype receive_type, int root, MPI_Comm comm) {
    if (passes(COLLWISE_GATHER, comm)) {
        return PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_count = receive_count,
                          .receive_type = receive_type,
                          .root = root,
                          .comm = comm};
    return ran(COLLWISE_GATHER, &call)
               ? MPI_SUCCESS
               : PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
}

int MPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                const int displacements[], MPI_Datatype receive_type, int root, MPI_Comm comm) {
    if (passes(COLLWISE_GATHERV, comm)) {
        return PMPI_Gatherv(send, send_count, send_type, receive, receive_counts, displacements, receive_type, root,
                            comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_counts = receive_counts,
                          .receive_displacements = displacements,
                          .receive_type = receive_type,
                          .root = root,
                          .comm = comm};
    return ran(COLLWISE_GATHERV, &call) ? MPI_SUCCESS
                                        : PMPI_Gatherv(send, send_count, send_type, receive, receive_counts,
                                                       displacements, receive_type, root, comm);
}

int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm) {
    if (passes(COLLWISE_SCATTER, comm)) {
        return PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_count = receive_count,
                          .receive_type = receive_type,
                          .root = root,
                          .comm = comm};
    return ran(COLLWISE_SCATTER, &call)
               ? MPI_SUCCESS
               : PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
}

int MPI_Scatterv(const void *send, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                 void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
    if (passes(COLLWISE_SCATTERV, comm)) {
        return PMPI_Scatterv(send, send_counts, displacements, send_type, receive, receive_count, receive_type, root,
                             comm);
    }
    collwise_call call = {.send = send,
                          .send_counts = send_counts,
                          .send_displacements = displacements,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_count = receive_count,
                          .receive_type = receive_type,
                          .root = root,
                          .comm = comm};
    return ran(COLLWISE_SCATTERV, &call) ? MPI_SUCCESS
                                         : PMPI_Scatterv(send, send_counts, displacements, send_type, receive,
                                                         receive_count, receive_type, root, comm);
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm) {
    if (passes_sized(COLLWISE_ALLGATHER, receive_count, receive_type, comm)) {
        return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_count = receive_count,
                          .receive_type = receive_type,
                          .comm = comm};
    return ran(COLLWISE_ALLGATHER, &call)
               ? MPI_SUCCESS
               : PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                   const int displacements[], MPI_Datatype receive_type, MPI_Comm comm) {
    if (passes(COLLWISE_ALLGATHERV, comm)) {
        return PMPI_Allgatherv(send, send_count, send_type, receive, receive_counts, displacements, receive_type, comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_counts = receive_counts,
                          .receive_displacements = displacements,
                          .receive_type = receive_type,
                          .comm = comm};
    return ran(COLLWISE_ALLGATHERV, &call) ? MPI_SUCCESS
                                           : PMPI_Allgatherv(send, send_count, send_type, receive, receive_counts,
                                                             displacements, receive_type, comm);
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm) {
    if (passes_sized(COLLWISE_ALLTOALL, receive_count, receive_type, comm)) {
        return PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
    }
    collwise_call call = {.send = send,
                          .send_count = send_count,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_count = receive_count,
                          .receive_type = receive_type,
                          .comm = comm};
    return ran(COLLWISE_ALLTOALL, &call)
               ? MPI_SUCCESS
               : PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Alltoallv(const void *send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                  void *receive, const int receive_counts[], const int receive_displacements[],
                  MPI_Datatype receive_type, MPI_Comm comm) {
    if (passes(COLLWISE_ALLTOALLV, comm)) {
        return PMPI_Alltoallv(send, send_counts, send_displacements, send_type, receive, receive_counts,
                              receive_displacements, receive_type, comm);
    }
    collwise_call call = {.send = send,
                          .send_counts = send_counts,
                          .send_displacements = send_displacements,
                          .send_type = send_type,
                          .receive = receive,
                          .receive_counts = receive_counts,
                          .receive_displacements = receive_displacements,
                          .receive_type = receive_type,
                          .comm = comm};
    return ran(COLLWISE_ALLTOALLV, &call) ? MPI_SUCCESS
                                          : PMPI_Alltoallv(send, send_counts, send_displacements, send_type, receive,
                                                           receive_counts, receive_displacements, receive_type, comm);
}

int MPI_Barrier(MPI_Comm comm) {
    if (passes(COLLWISE_BARRIER, comm)) {
        return PMPI_Barrier(comm);
    }
    collwise_call call = {.comm = comm};
    return ran(COLLWISE_BARRIER, &call) ? MPI_SUCCESS : PMPI_Barrier(comm);
}

int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    if (passes_sized(COLLWISE_REDUCE, count, type, comm)) {
        return PMPI_Reduce(send, receive, count, type, op, root, comm);
    }
    collwise_call call = {.send = send,
                          .receive = receive,
                          .receive_count = count,
                          .receive_type = type,
                          .op = op,
                          .root = root,
                          .comm = comm};
    return ran(COLLWISE_REDUCE, &call) ? MPI_SUCCESS : PMPI_Reduce(send, receive, count, type, op, root, comm);
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (passes_sized(COLLWISE_ALLREDUCE, count, type, comm)) {
        return PMPI_Allreduce(send, receive, count, type, op, comm);
    }
    collwise_call call = {
        .send = send, .receive = receive, .receive_count = count, .receive_type = type, .op = op, .comm = comm};
    return ran(COLLWISE_ALLREDUCE, &call) ? MPI_SUCCESS : PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Reduce_scatter(const void *send, void *receive, const int receive_counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
    if (passes(COLLWISE_REDUCE_SCATTER, comm)) {
        return PMPI_Reduce_scatter(send, receive, receive_counts, type, op, comm);
    }
    collwise_call call = {.send = send,
                          .receive = receive,
                          .receive_counts = receive_counts,
                          .receive_type = type,
                          .op = op,
                          .comm = comm};
    return ran(COLLWISE_REDUCE_SCATTER, &call) ? MPI_SUCCESS
                                               : PMPI_Reduce_scatter(send, receive, receive_counts, type, op, comm);
}

int MPI_Reduce_scatter_block(const void *send, void *receive, int receive_count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    if (passes_sized(COLLWISE_REDUCE_SCATTER_BLOCK, receive_count, type, comm)) {
        return PMPI_Reduce_scatter_block(send, receive, receive_count, type, op, comm);
    }
    collwise_call call = {
        .send = send, .receive = receive, .receive_count = receive_count, .receive_type = type, .op = op, .comm = comm};
    return ran(COLLWISE_REDUCE_SCATTER_BLOCK, &call)
               ? MPI_SUCCESS
               : PMPI_Reduce_scatter_block(send, receive, receive_count, type, op, comm);
}

int MPI_Scan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (passes_sized(COLLWISE_SCAN, count, type, comm)) {
        return PMPI_Scan(send, receive, count, type, op, comm);
    }
    collwise_call call = {
        .send = send, .receive = receive, .receive_count = count, .receive_type = type, .op = op, .comm = comm};
    return ran(COLLWISE_SCAN, &call) ? MPI_SUCCESS : PMPI_Scan(send, receive, count, type, op, comm);
}

int MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    if (passes_sized(COLLWISE_EXSCAN, count, type, comm)) {
        return PMPI_Exscan(send, receive, count, type, op, comm);
    }
    collwise_call call = {
        .send = send, .receive = receive, .receive_count = count, .receive_type = type, .op = op, .comm = comm};
    return ran(COLLWISE_EXSCAN, &call) ? MPI_SUCCESS : PMPI_Exscan(send, receive, count, type, op, comm);
}
