/* Broadcasts and reductions one after another, through the memory of a node, with another root and length each time,
 * while processes are late at random. Gathers follow the broadcasts: those who have their data send messages to others
 * who still wait for it.
 *
 *     changing_roots CALLS SEED [COLLECTIVE ALGORITHM WITHIN]
 *
 * makes so many calls of each algorithm, collective and value of `within` in turn, or of those named. Each process
 * prints one JSON record: how many calls gave it a result, how many of these were wrong, and the first of them. */
#include "collwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_DOUBLES = 4096, MAX_DOUBLES = 5 * CHUNK_DOUBLES, LONGEST_DELAY_US = 300, MAX_PROCS = 16 };

typedef struct {
    const char *collective, *algorithm;
    int within;
} kind;

static const kind kinds[] = {
    {"reduce", "tasks_binomial", 1}, {"reduce", "tasks_binomial", 2}, {"reduce", "tasks_chain", 1},
    {"reduce", "tasks_chain", 2},    {"bcast", "tasks_binomial", 1},  {"bcast", "tasks_binomial", 2},
};

typedef struct {
    long results, wrong;
    char first[120];
} tally;

static unsigned drawn(unsigned long long *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(*state >> 33);
}

/* Sums of these are exact. */
static double element(int call, int index, int rank) { return (double)((31 * call + 7 * index) % 1000 + rank); }

static double expected(int call, int index, int root, int procs, int is_reduction) {
    return is_reduction ? procs * element(call, index, 0) + procs * (procs - 1) / 2.0 : element(call, index, root);
}

/* Whether this process's part in a gather of one element from each came out wrong. */
static int gather_is_wrong(int root) {
    static double gathered[MAX_PROCS];
    int rank, procs, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    double own = rank;
    collwise_call arguments = {.send = &own,
                               .send_count = 1,
                               .send_type = MPI_DOUBLE,
                               .receive = gathered,
                               .receive_count = 1,
                               .receive_type = MPI_DOUBLE,
                               .root = root,
                               .comm = MPI_COMM_WORLD};
    collwise_run(collwise_find("gather", "tasks_binomial"), &arguments, (collwise_parameters){0});
    for (int i = 0; rank == root && i < procs; i++) {
        wrong += gathered[i] != i;
    }
    return wrong > 0;
}

/* All processes draw the same roots and lengths, short ones mostly, and each its own delays. */
static void run(const kind *one, int calls, unsigned long long seed, tally *sum) {
    static double own[MAX_DOUBLES], result[MAX_DOUBLES];
    int rank, procs, is_reduction = strcmp(one->collective, "reduce") == 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    unsigned long long shared = seed, alone = seed + (unsigned long long)rank + 1;
    const collwise_algorithm *algorithm = collwise_find(one->collective, one->algorithm);
    for (int call = 0; call < calls; call++) {
        int root = (int)(drawn(&shared) % (unsigned)procs);
        int longest = drawn(&shared) % 4 == 0 ? MAX_DOUBLES : 64;
        int count = 1 + (int)(drawn(&shared) % (unsigned)longest);
        for (int i = 0; i < count; i++) {
            own[i] = element(call, i, rank);
            result[i] = !is_reduction && rank == root ? own[i] : -1;
        }
        if (drawn(&alone) % 4 == 0) {
            usleep(drawn(&alone) % LONGEST_DELAY_US);
        }
        collwise_call arguments = {.send = own,
                                   .receive = result,
                                   .receive_count = count,
                                   .receive_type = MPI_DOUBLE,
                                   .op = MPI_SUM,
                                   .root = root,
                                   .comm = MPI_COMM_WORLD};
        collwise_run(algorithm, &arguments, (collwise_parameters){.within = one->within});
        if (is_reduction && rank != root) {
            continue;
        }
        int i = 0;
        while (i < count && result[i] == expected(call, i, root, procs, is_reduction)) {
            i++;
        }
        sum->results++;
        sum->wrong += i < count;
        if (!is_reduction && gather_is_wrong((int)(drawn(&shared) % (unsigned)procs))) {
            sum->wrong++;
            snprintf(sum->first, sizeof sum->first, "the gather after call %d", call);
        }
        if (i < count && sum->first[0] == '\0') {
            snprintf(sum->first, sizeof sum->first, "%s %s, within %d, call %d, root %d: element %d of %d",
                     one->collective, one->algorithm, one->within, call, root, i, count);
        }
    }
}

int main(int argc, char **argv) {
    int rank;
    tally sum = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3 && argc != 6) {
        fprintf(stderr, "usage: changing_roots CALLS SEED [COLLECTIVE ALGORITHM WITHIN]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int calls = atoi(argv[1]);
    unsigned long long seed = strtoull(argv[2], NULL, 10);
    if (argc == 6) {
        run(&(kind){argv[3], argv[4], atoi(argv[5])}, calls, seed, &sum);
    }
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++) {
        run(&kinds[i], calls, seed + i, &sum);
    }
    printf("{\"rank\": %d, \"results\": %ld, \"wrong\": %ld, \"first\": \"%s\"}\n", rank, sum.results, sum.wrong,
           sum.first);
    MPI_Finalize();
    return 0;
}
