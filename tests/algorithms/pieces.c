/* The linear gather and scatter in pieces, on every number of processes, message size up to a largest one, bound and
 * limit: the data, and the messages that carry it.
 *
 *     pieces MAX_BYTES
 *
 * Each process prints one JSON record: how many calls it made, how many of those cut the message, and the first thing
 * that was wrong. Data goes by MPI_Send, barriers by MPI_Sendrecv: both are counted here. */
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROCS = 16 };

/* The messages of a process since it last looked. Simulated processes may share this: each has a place of its own. */
typedef struct {
    long sends, exchanges, bytes, longest;
} traffic;

static traffic seen[MAX_PROCS];

static traffic *mine(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return &seen[rank];
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm) {
    traffic *own = mine();
    own->sends++;
    own->bytes += count;
    own->longest = count > own->longest ? count : own->longest;
    return PMPI_Send(data, count, type, destination, tag, comm);
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                 MPI_Status *status) {
    mine()->exchanges++;
    return PMPI_Sendrecv(send, send_count, send_type, destination, send_tag, receive, receive_count, receive_type,
                         source, receive_tag, comm, status);
}

typedef struct {
    int is_gather, procs, rank, root, bytes, bound, limit;
    MPI_Comm comm;
} trial;

/* The thesis's condition, by trying: the least n for which no piece of whole bytes reaches the bound. */
static long pieces_of(const trial *one) {
    int below = !one->is_gather || one->limit == 0 || one->bytes <= one->limit;
    if (one->bound < 2 || one->bytes < one->bound || !below) {
        return 1;
    }
    long n = 1;
    while ((one->bytes + n - 1) / n >= one->bound) {
        n++;
    }
    return n;
}

static unsigned char byte_of(const trial *one, int block, int place) {
    return (unsigned char)(block * 37 + place * 11 + one->bound * 3 + one->limit);
}

static const char *judge_traffic(const trial *one, const traffic *sent) {
    long n = pieces_of(one), rounds = 0;
    int is_sender = (one->rank == one->root) != one->is_gather;
    long receivers = one->is_gather ? 1 : one->procs - 1;
    while (1L << rounds < one->procs) {
        rounds++;
    }
    if (sent->sends != (is_sender && one->procs > 1 ? n * receivers : 0)) {
        return "another number of messages";
    }
    if (sent->bytes != (is_sender && one->procs > 1 ? one->bytes * receivers : 0)) {
        return "another number of bytes";
    }
    if (n > 1 && sent->longest >= one->bound) {
        return "a piece that reaches the bound";
    }
    return sent->exchanges != (one->is_gather && n > 1 ? n * rounds : 0) ? "another number of barriers" : NULL;
}

static const char *judge_data(const trial *one, const unsigned char *all, const unsigned char *own) {
    int holds_all = one->is_gather && one->rank == one->root;
    for (int block = 0; block < one->procs; block++) {
        for (int i = 0; i < one->bytes; i++) {
            if (holds_all && all[block * one->bytes + i] != byte_of(one, block, i)) {
                return "a wrong byte at the root";
            }
            if (!one->is_gather && block == one->rank && own[i] != byte_of(one, block, i)) {
                return "a wrong byte";
            }
        }
    }
    return NULL;
}

static const char *try_one(const trial *one) {
    size_t room = (size_t)(one->bytes * one->procs);
    unsigned char *all = calloc(room, 1), *own = calloc((size_t)one->bytes, 1);
    for (int place = 0; place < one->bytes; place++) {
        for (int block = 0; block < one->procs && !one->is_gather; block++) {
            all[block * one->bytes + place] = byte_of(one, block, place);
        }
        own[place] = one->is_gather ? byte_of(one, one->rank, place) : 0;
    }
    collwise_call call = {.send = one->is_gather ? own : all,
                          .send_count = one->bytes,
                          .send_type = MPI_BYTE,
                          .receive = one->is_gather ? all : own,
                          .receive_count = one->bytes,
                          .receive_type = MPI_BYTE,
                          .root = one->root,
                          .comm = one->comm};
    collwise_parameters with = {.segment_bytes = (size_t)one->bound, .limit_bytes = (size_t)one->limit};
    *mine() = (traffic){0};
    collwise_run(collwise_find(one->is_gather ? "gather" : "scatter", "lmo"), &call, with);
    const char *wrong = judge_traffic(one, mine());
    wrong = wrong == NULL ? judge_data(one, all, own) : wrong;
    free(all);
    free(own);
    return wrong;
}

typedef struct {
    long calls, cuts;
    char wrong[200];
} tally;

static void count(const trial *one, tally *sum) {
    const char *wrong = try_one(one);
    sum->calls++;
    sum->cuts += pieces_of(one) > 1;
    if (wrong != NULL && sum->wrong[0] == '\0') {
        snprintf(sum->wrong, sizeof sum->wrong, "%s: %s, P = %d, root %d, %d bytes, bound %d, limit %d", wrong,
                 one->is_gather ? "gather" : "scatter", one->procs, one->root, one->bytes, one->bound, one->limit);
    }
}

static void try_all_of(MPI_Comm comm, int max_bytes, tally *sum) {
    trial one = {.comm = comm};
    MPI_Comm_size(comm, &one.procs);
    MPI_Comm_rank(comm, &one.rank);
    collwise_private(comm);
    for (one.bytes = 1; one.bytes <= max_bytes; one.bytes++) {
        for (one.bound = 0; one.bound <= max_bytes + 1; one.bound++) {
            one.root = (one.bytes + one.bound) % one.procs;
            one.is_gather = 0;
            one.limit = 0;
            count(&one, sum);
            one.is_gather = 1;
            /* Without a limit, and on both sides of one. */
            const int limits[] = {0, one.bytes - 1, one.bytes, one.bytes + 1};
            for (int i = 0; i < 4; i++) {
                one.limit = limits[i];
                count(&one, sum);
            }
        }
    }
}

int main(int argc, char **argv) {
    int world_procs, rank;
    tally sum = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &world_procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2 || world_procs > MAX_PROCS) {
        fprintf(stderr, "usage: pieces MAX_BYTES, on up to %d processes\n", MAX_PROCS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int procs = 1; procs <= world_procs; procs++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, rank < procs ? 0 : MPI_UNDEFINED, rank, &comm);
        if (comm != MPI_COMM_NULL) {
            try_all_of(comm, atoi(argv[1]), &sum);
            MPI_Comm_free(&comm);
        }
    }
    printf("{\"rank\": %d, \"calls\": %ld, \"cuts\": %ld, \"wrong\": \"%s\"}\n", rank, sum.calls, sum.cuts, sum.wrong);
    MPI_Finalize();
    return 0;
}
