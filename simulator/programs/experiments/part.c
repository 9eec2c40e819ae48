#include "experiments.h"

#include "internal.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>

static const workload_memory payload_memory = {program_allocate_payload, program_free_payload};

/* The algorithm of a collective kind; NULL for other kinds. */
static const collwise_algorithm *algorithm_of(experiment_kind kind) {
    switch (kind) {
    case SCATTER:
        return collwise_find("scatter", "linear");
    case GATHER:
        return collwise_find("gather", "linear");
    case CHAIN_BCAST:
        return collwise_find("bcast", "chain");
    case LINEAR_BARRIER:
        return collwise_find("barrier", "linear");
    default:
        return NULL;
    }
}

/* --- Messages ---------------------------------------------------------------------------------------------------- */

/* The bytes of a message that the first process sends. */
static int outward_bytes(const experiment *one) {
    return one->kind == RECEIVE || one->kind == UNEXPECTED_RECEIVE ? one->reply_bytes : one->message_bytes;
}

/* The bytes of a message that the others send. */
static int answer_bytes(const experiment *one) {
    switch (one->kind) {
    case RECEIVE:
    case UNEXPECTED_RECEIVE:
    case SENDRECV:
    case EAGER_LIMIT:
    case REDUCE:
        return one->message_bytes;
    default:
        return one->reply_bytes;
    }
}

/* The number of messages that a process receives in a repetition. */
static int receives(const part *mine) {
    if (mine->role == 0) {
        return mine->procs - 1;
    }
    return mine->one->kind == SATURATION || mine->one->kind == PRTT ? mine->one->count : 1;
}

static int posts_receives(const part *mine) {
    switch (mine->one->kind) {
    case SENDRECV:
    case EAGER_LIMIT:
    case CLOCK:
    case REDUCE:
        return 0;
    case UNEXPECTED_RECEIVE:
        return mine->role > 0;
    default:
        return mine->algorithm == NULL;
    }
}

static char *allocate_touched(size_t bytes) {
    char *message = program_allocate_payload(bytes + 1);
    if (message == NULL) {
        program_fail("experiments", "out of", "memory");
    }
    if (!COLLWISE_IS_SIMULATED) {
        memset(message, 1, bytes + 1); /* memory never touched would be faster to send */
    }
    return message;
}

/* --- Parts ------------------------------------------------------------------------------------------------------- */

/* Finds the process among those of the experiment. */
static void assign_role(part *mine, int rank) {
    const experiment *one = mine->one;
    mine->role = -1;
    mine->procs = one->procs;
    mine->ranks = one->ranks;
    if (program_is_collective(one)) {
        mine->role = rank == one->ranks[0] ? 0 : rank < one->procs ? 1 : -1;
        return;
    }
    int together = one->kind == ONE_TO_TWO ? 3 : 2;
    for (int i = 0; i < one->procs; i++) {
        if (one->ranks[i] == rank) {
            mine->role = i % together;
            mine->procs = together;
            mine->ranks = &one->ranks[i - mine->role];
        }
    }
}

part program_part_make(const experiment *one, int rank, MPI_Comm comm) {
    part mine = {.one = one, .algorithm = algorithm_of(one->kind), .comm = comm};
    assign_role(&mine, rank);
    if (mine.role < 0) {
        return mine;
    }
    if (mine.algorithm != NULL) {
        if (!program_workload_make(&mine.work, mine.algorithm->kind, (size_t)one->message_bytes, one->ranks[0], comm,
                                   payload_memory)) {
            program_fail("experiments", "out of memory for", mine.algorithm->name);
        }
        collwise_private(comm);
        return mine;
    }
    size_t outward = (size_t)outward_bytes(one), answer = (size_t)answer_bytes(one), all = (size_t)receives(&mine);
    mine.out = allocate_touched(mine.role == 0 ? outward : answer);
    mine.in = allocate_touched(all * (mine.role == 0 ? answer : outward));
    mine.posted = collwise_allocate(all * sizeof *mine.posted, MPI_COMM_WORLD);
    return mine;
}

void program_part_free(part *mine) {
    if (mine->role < 0) {
        return;
    }
    if (mine->algorithm != NULL) {
        program_workload_free(&mine->work);
        return;
    }
    program_free_payload(mine->out);
    program_free_payload(mine->in);
    free(mine->posted);
}

void program_part_post_receives(const part *mine) {
    if (!posts_receives(mine)) {
        return;
    }
    int bytes = mine->role == 0 ? answer_bytes(mine->one) : outward_bytes(mine->one);
    for (int i = 0; i < receives(mine); i++) {
        int source = mine->ranks[mine->role == 0 ? i + 1 : 0];
        MPI_Irecv(mine->in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, source, TAG_DATA, MPI_COMM_WORLD,
                  &mine->posted[i]);
    }
}

/* The first process continues when all others have posted their receives. */
void program_part_synchronise(const part *mine) {
    if (mine->one->kind == CLOCK || mine->one->kind == REDUCE) {
        return;
    }
    if (mine->algorithm != NULL) {
        collwise_barrier(mine->comm);
        collwise_barrier(mine->comm);
    } else if (mine->role > 0) {
        MPI_Send(NULL, 0, MPI_BYTE, mine->ranks[0], TAG_READY, MPI_COMM_WORLD);
    } else {
        for (int i = 1; i < mine->procs; i++) {
            MPI_Recv(NULL, 0, MPI_BYTE, mine->ranks[i], TAG_READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* --- Running ----------------------------------------------------------------------------------------------------- */

static void send_to(const part *mine, int role) {
    int bytes = mine->role == 0 ? outward_bytes(mine->one) : answer_bytes(mine->one);
    MPI_Send(mine->out, bytes, MPI_BYTE, mine->ranks[role], TAG_DATA, MPI_COMM_WORLD);
}

/* The first process of kinds with a reply. */
static repetition run_first(const part *mine) {
    const experiment *one = mine->one;
    MPI_Request sent = MPI_REQUEST_NULL;
    double start = MPI_Wtime(), from = start, until = 0;
    if (one->kind == ISEND) {
        MPI_Isend(mine->out, one->message_bytes, MPI_BYTE, mine->ranks[1], TAG_DATA, MPI_COMM_WORLD, &sent);
    }
    for (int i = 0; one->kind != ISEND && i < one->count; i++) {
        if (i > 0 && one->delay_seconds > 0) {
            program_busy_wait(one->delay_seconds);
        }
        send_to(mine, 1);
    }
    if (one->kind == ONE_TO_TWO) {
        send_to(mine, 2);
    }
    int sends_only = one->kind == SEND || one->kind == ISEND;
    if (sends_only) {
        until = MPI_Wtime();
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    if (one->kind == RECEIVE) {
        program_busy_wait(one->delay_seconds);
        from = MPI_Wtime();
    }
    if (one->kind == UNEXPECTED_RECEIVE) {
        program_busy_wait_and_yield(one->delay_seconds);
        from = MPI_Wtime();
        MPI_Recv(mine->in, one->message_bytes, MPI_BYTE, mine->ranks[1], TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int i = receives(mine) - 1; i >= 0; i--) {
            MPI_Wait(&mine->posted[i], MPI_STATUS_IGNORE);
        }
    }
    double end = MPI_Wtime();
    return (repetition){(sends_only ? until : end) - from, end - start};
}

/* Another process of kinds with a reply. */
static repetition run_other(const part *mine) {
    double start = MPI_Wtime();
    for (int i = 0; i < receives(mine); i++) {
        MPI_Wait(&mine->posted[i], MPI_STATUS_IGNORE);
    }
    send_to(mine, 0);
    double seconds = MPI_Wtime() - start;
    return (repetition){seconds, seconds};
}

static repetition run_collective(const part *mine) {
    double start = MPI_Wtime();
    collwise_run(mine->algorithm, &mine->work.call, (collwise_parameters){0});
    double seconds = MPI_Wtime() - start;
    return (repetition){seconds, seconds};
}

static repetition run_sendrecv(const part *mine) {
    int bytes = mine->one->message_bytes, other = mine->ranks[1 - mine->role];
    double start = MPI_Wtime();
    for (int i = 0; i < mine->one->count; i++) {
        MPI_Sendrecv(mine->out, bytes, MPI_BYTE, other, TAG_DATA, mine->in, bytes, MPI_BYTE, other, TAG_DATA,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double seconds = MPI_Wtime() - start;
    return (repetition){seconds / mine->one->count, seconds};
}

static repetition run_clock(const part *mine) {
    double start = MPI_Wtime(), end = start;
    for (int i = 0; i < mine->one->count; i++) {
        end = MPI_Wtime();
    }
    return (repetition){(end - start) / mine->one->count, end - start};
}

/* Simulated reductions are charged by the algorithms, not here: this is for real MPI. */
static repetition run_reduce(const part *mine) {
    int bytes = mine->one->message_bytes;
    memset(mine->in, 0, (size_t)bytes);
    memset(mine->out, 0, (size_t)bytes);
    double start = MPI_Wtime();
    MPI_Reduce_local(mine->out, mine->in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM);
    double seconds = MPI_Wtime() - start;
    return (repetition){seconds, seconds};
}

/* Whether MPI_Send of so many bytes waits for the receive; both processes get the answer. */
static int send_waits(const part *mine, int bytes) {
    int waits = 0;
    program_part_synchronise(mine);
    if (mine->role == 0) {
        double start = MPI_Wtime();
        MPI_Send(mine->out, bytes, MPI_BYTE, mine->ranks[1], TAG_DATA, MPI_COMM_WORLD);
        waits = MPI_Wtime() - start > mine->one->delay_seconds / 2;
        MPI_Send(&waits, 1, MPI_INT, mine->ranks[1], TAG_VERDICT, MPI_COMM_WORLD);
    } else {
        program_busy_wait_and_yield(mine->one->delay_seconds);
        MPI_Recv(mine->in, bytes, MPI_BYTE, mine->ranks[0], TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&waits, 1, MPI_INT, mine->ranks[0], TAG_VERDICT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return waits;
}

/* By bisection. A send may also be late for other reasons, so that a single one of `count` in time decides. */
static int eager_limit(const part *mine) {
    int returns = 0, waits = mine->one->message_bytes, trials = mine->one->count;
    if (!send_waits(mine, waits)) {
        return 0;
    }
    while (waits - returns > 1) {
        int middle = returns + (waits - returns) / 2, late = 0;
        while (late < trials && send_waits(mine, middle)) {
            late++;
        }
        *(late == trials ? &waits : &returns) = middle;
    }
    return waits;
}

/* The result here is a number of bytes. */
static repetition run_eager_limit(const part *mine) {
    double start = MPI_Wtime();
    int bytes = eager_limit(mine);
    return (repetition){bytes, MPI_Wtime() - start};
}

repetition program_part_run(const part *mine) {
    switch (mine->one->kind) {
    case SENDRECV:
        return run_sendrecv(mine);
    case EAGER_LIMIT:
        return run_eager_limit(mine);
    case CLOCK:
        return mine->role == 0 ? run_clock(mine) : (repetition){0, 0};
    case REDUCE:
        return mine->role == 0 ? run_reduce(mine) : (repetition){0, 0};
    default:
        return mine->algorithm != NULL ? run_collective(mine) : mine->role == 0 ? run_first(mine) : run_other(mine);
    }
}

void program_part_take_slowest(repetition *own, const part *mine) {
    if (mine->algorithm != NULL) {
        program_allreduce_max(&own->seconds, 1, mine->comm);
        own->elapsed_seconds = own->seconds;
    }
}
