#include "experiments.h"

#include "internal.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>

static const workload_memory payload_memory = {allocate_payload, free_payload};

/* The algorithm of a collective kind; NULL for kinds between two or three processes. */
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

/* The bytes of a message that the first process sends, and of the answer. */
static int outward_bytes(const experiment *one) { return one->kind == RECEIVE ? one->reply_bytes : one->message_bytes; }
static int answer_bytes(const experiment *one) { return one->kind == RECEIVE ? one->message_bytes : one->reply_bytes; }

static char *allocate_touched(size_t bytes) {
    char *message = allocate_payload(bytes + 1);
    if (message == NULL) {
        fail("out of", "memory");
    }
    if (!SIMULATED) {
        memset(message, 1, bytes + 1); /* memory never touched would be faster to send */
    }
    return message;
}

/* How many messages a process receives in a repetition. */
static int receives(const part *mine) { return mine->role == 0 ? mine->one->procs - 1 : mine->one->count; }

part part_make(const experiment *one, int role, MPI_Comm comm) {
    part mine = {.one = one, .role = role, .algorithm = algorithm_of(one->kind), .comm = comm};
    if (mine.algorithm != NULL) {
        if (!workload_make(&mine.work, mine.algorithm->kind, (size_t)one->message_bytes, one->ranks[0], comm,
                           payload_memory)) {
            fail("out of memory for", mine.algorithm->name);
        }
        collwise_private(comm);
        return mine;
    }
    size_t outward = (size_t)outward_bytes(one), answer = (size_t)answer_bytes(one), all = (size_t)receives(&mine);
    mine.out = allocate_touched(role == 0 ? outward : answer);
    mine.in = allocate_touched(all * (role == 0 ? answer : outward));
    mine.posted = collwise_allocate(all * sizeof *mine.posted, MPI_COMM_WORLD);
    return mine;
}

void part_free(part *mine) {
    if (mine->algorithm != NULL) {
        workload_free(&mine->work);
        return;
    }
    free_payload(mine->out);
    free_payload(mine->in);
    free(mine->posted);
}

void part_post_receives(const part *mine) {
    if (mine->algorithm != NULL) {
        return;
    }
    int bytes = mine->role == 0 ? answer_bytes(mine->one) : outward_bytes(mine->one);
    for (int i = 0; i < receives(mine); i++) {
        int source = mine->one->ranks[mine->role == 0 ? i + 1 : 0];
        MPI_Irecv(mine->in + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, source, TAG_DATA, MPI_COMM_WORLD,
                  &mine->posted[i]);
    }
}

static void send_to(const part *mine, int role) {
    int bytes = mine->role == 0 ? outward_bytes(mine->one) : answer_bytes(mine->one);
    MPI_Send(mine->out, bytes, MPI_BYTE, mine->one->ranks[role], TAG_DATA, MPI_COMM_WORLD);
}

static repetition run_first(const part *mine) {
    const experiment *one = mine->one;
    double start = MPI_Wtime(), from = start, until = 0;
    for (int i = 0; i < one->count; i++) {
        if (i > 0 && one->delay_seconds > 0) {
            busy_wait(one->delay_seconds);
        }
        send_to(mine, 1);
    }
    if (one->kind == ONE_TO_TWO) {
        send_to(mine, 2);
    }
    if (one->kind == SEND) {
        until = MPI_Wtime();
    }
    if (one->kind == RECEIVE) {
        busy_wait(one->delay_seconds);
        from = MPI_Wtime();
    }
    for (int i = receives(mine) - 1; i >= 0; i--) {
        MPI_Wait(&mine->posted[i], MPI_STATUS_IGNORE);
    }
    double end = MPI_Wtime();
    return (repetition){(one->kind == SEND ? until : end) - from, end - start};
}

repetition part_run(const part *mine) {
    double start = MPI_Wtime();
    if (mine->algorithm == NULL && mine->role == 0) {
        return run_first(mine);
    }
    if (mine->algorithm != NULL) {
        collwise_run(mine->algorithm, &mine->work.call, (collwise_parameters){0});
    } else {
        for (int i = 0; i < receives(mine); i++) {
            MPI_Wait(&mine->posted[i], MPI_STATUS_IGNORE);
        }
        send_to(mine, 0);
    }
    double seconds = MPI_Wtime() - start;
    return (repetition){seconds, seconds};
}

void part_take_slowest(repetition *own, const part *mine) {
    if (mine->algorithm != NULL) {
        allreduce_max(&own->seconds, 1, mine->comm);
        own->elapsed_seconds = own->seconds;
    }
}
