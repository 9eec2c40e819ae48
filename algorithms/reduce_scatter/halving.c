/* Reduce-scatter by vector halving, which recursive halving and the butterfly share. In each of log2 W rounds, partners
 * give each other the half of what they hold that the other keeps. They differ in who meets first: the furthest, or
 * the nearest, so that neighbours' contributions come together in rank order; then what a worker ends with is not its
 * own share but that of its mirror image, whose number has the bits of its own in reverse. */
#include "internal.h"

/* Of P = 2^k + E processes, the first 2 E make pairs, whose odd ranks work for both. That leaves 2^k workers. A share
 * is the blocks of all that a worker works for. */
typedef struct {
    int rank, workers, pairs;
    const size_t *offsets;
} team;

static team team_of(const size_t *offsets, MPI_Comm comm) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int workers = 1 << collwise_log2(procs);
    return (team){.rank = rank, .workers = workers, .pairs = procs - workers, .offsets = offsets};
}

static int worker_for(const team *team, int rank) { return rank < 2 * team->pairs ? rank / 2 : rank - team->pairs; }

static int first_rank(const team *team, int worker) { return worker < team->pairs ? 2 * worker : worker + team->pairs; }

static int rank_of(const team *team, int worker) { return first_rank(team, worker + 1) - 1; }

static size_t share_start(const team *team, int worker) { return team->offsets[first_rank(team, worker)]; }

static int mirror_image(const team *team, int worker) {
    int mirrored = 0;
    for (int bit = 1; bit < team->workers; bit *= 2) {
        mirrored = 2 * mirrored + ((worker & bit) != 0);
    }
    return mirrored;
}

static void halve(char *data, char *received, const collwise_operation *op, const team *team, int nearest_first,
                  MPI_Comm comm) {
    int worker = worker_for(team, team->rank), first = 0;
    for (int shares = team->workers / 2; shares > 0; shares /= 2) {
        int partner = worker ^ (nearest_first ? team->workers / (2 * shares) : shares);
        int given = worker < partner ? first + shares : first;
        first = worker < partner ? first : first + shares;
        size_t give = share_start(team, given), give_elements = share_start(team, given + shares) - give;
        size_t keep = share_start(team, first), keep_elements = share_start(team, first + shares) - keep;
        collwise_sendrecv(data + give * op->element_bytes, give_elements * op->element_bytes, rank_of(team, partner),
                          received, keep_elements * op->element_bytes, rank_of(team, partner), comm);
        if (partner < worker) {
            collwise_combine(op, received, data + keep * op->element_bytes, keep_elements);
        } else {
            collwise_combine_left(op, data + keep * op->element_bytes, received, keep_elements);
        }
    }
}

/* Each block of the share that lies here goes to the process that it is for. */
static void deliver(const char *data, char *mine, size_t element_bytes, const team *team, int share, int source,
                    MPI_Comm comm) {
    collwise_requests requests = collwise_requests_make(3, comm);
    if (source != team->rank) {
        collwise_start_receive(&requests, mine,
                               (team->offsets[team->rank + 1] - team->offsets[team->rank]) * element_bytes, source);
    }
    for (int rank = first_rank(team, share); rank < first_rank(team, share + 1); rank++) {
        const char *block = data + team->offsets[rank] * element_bytes;
        size_t block_bytes = (team->offsets[rank + 1] - team->offsets[rank]) * element_bytes;
        if (rank == team->rank) {
            collwise_copy(mine, block, block_bytes);
        } else {
            collwise_start_send(&requests, block, block_bytes, rank);
        }
    }
    collwise_wait(&requests);
    collwise_requests_free(&requests);
}

void collwise_reduce_scatter_by_halving(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                        int nearest_first, MPI_Comm comm) {
    team team = team_of(offsets, comm);
    size_t elements = share_start(&team, team.workers), bytes = elements * op->element_bytes;
    int worker = worker_for(&team, team.rank);
    int share = nearest_first ? mirror_image(&team, worker) : worker;
    if (rank_of(&team, worker) != team.rank) {
        collwise_send(data, bytes, team.rank + 1, comm);
        collwise_receive(mine, (offsets[team.rank + 1] - offsets[team.rank]) * op->element_bytes, rank_of(&team, share),
                         comm);
        return;
    }
    char *received = collwise_scratch(bytes, comm);
    if (first_rank(&team, worker) != team.rank) {
        collwise_receive(received, bytes, team.rank - 1, comm);
        collwise_combine(op, received, data, elements);
    }
    halve(data, received, op, &team, nearest_first, comm);
    deliver(data, mine, op->element_bytes, &team, share, rank_of(&team, share), comm);
    collwise_scratch_free(received);
}
