/* Collectives must not touch the program's own messages, nor one another across communicators, and leave nothing
 * behind when a communicator is freed. */
#include "verify.h"

#include <stdio.h>

MPI_Comm verify_processes(MPI_Comm world, int first, int end, bool reversed) {
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_split(world, rank >= first && rank < end ? 0 : MPI_UNDEFINED, reversed ? -rank : rank, &comm);
    return comm;
}

bool verify_has_leftovers(MPI_Comm comm) {
    int here, in_private;
    MPI_Barrier(comm);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &here, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, collwise_private(comm), &in_private, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    return here || in_private;
}

/* A receive that matches anything waits on the program's communicator during the collective. */
static verify_outcome wildcard_receive(const collwise_algorithm *algorithm, MPI_Comm world,
                                       char complaint[VERIFY_TEXT]) {
    enum { TAG = 77, ROOM = 4096 };
    int procs, rank, got[ROOM] = {0};
    MPI_Comm comm; /* a fresh one, so that its private duplicate is made under the waiting receive too */
    MPI_Comm_dup(world, &comm);
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int message = 1000 + rank, before = (rank + procs - 1) % procs;
    MPI_Request receive;
    MPI_Status status;
    MPI_Irecv(got, ROOM, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
    verify_outcome outcome = verify_some_call(algorithm, 1, comm, complaint);
    MPI_Send(&message, 1, MPI_INT, (rank + 1) % procs, TAG, comm);
    MPI_Wait(&receive, &status);
    if (status.MPI_TAG != TAG || status.MPI_SOURCE != before || got[0] != 1000 + before) {
        snprintf(complaint, VERIFY_TEXT, "the program's receive on rank %d got another message", rank);
        outcome = VERIFY_WRONG;
    }
    MPI_Comm_free(&comm);
    return outcome;
}

/* A message of the program, with the tag that the collectives use, lies unreceived during the collective. */
static verify_outcome pending_message(const collwise_algorithm *algorithm, MPI_Comm world,
                                      char complaint[VERIFY_TEXT]) {
    int procs, rank, got;
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int message = 2000 + rank, before = (rank + procs - 1) % procs;
    MPI_Request send;
    MPI_Isend(&message, 1, MPI_INT, (rank + 1) % procs, COLLWISE_TAG, comm, &send);
    verify_outcome outcome = verify_some_call(algorithm, 2, comm, complaint);
    MPI_Recv(&got, 1, MPI_INT, before, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (got != 2000 + before) {
        snprintf(complaint, VERIFY_TEXT, "the program's message to rank %d was not received whole", rank);
        outcome = VERIFY_WRONG;
    }
    MPI_Comm_free(&comm);
    return outcome;
}

/* The first half of the processes, a half in the middle in reverse, and a duplicate of all: powers of two where the
 * whole is one, since some algorithms need that. By turns with nothing between. */
static verify_outcome overlapping_communicators(const collwise_algorithm *algorithm, MPI_Comm world,
                                                char complaint[VERIFY_TEXT]) {
    enum { COMMUNICATORS = 3, TURNS = 6 };
    MPI_Comm comms[COMMUNICATORS];
    int procs;
    verify_outcome outcome = VERIFY_RIGHT;
    MPI_Comm_size(world, &procs);
    comms[0] = verify_processes(world, 0, (procs + 1) / 2, false);
    comms[1] = verify_processes(world, procs / 4, procs / 4 + (procs + 1) / 2, true);
    MPI_Comm_dup(world, &comms[2]);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        MPI_Comm comm = comms[turn % COMMUNICATORS];
        /* All go on: a case that went wrong here, or did not apply, may be right elsewhere. */
        if (comm != MPI_COMM_NULL && verify_some_call(algorithm, turn, comm, complaint) == VERIFY_WRONG) {
            outcome = VERIFY_WRONG;
        }
    }
    for (int i = 0; i < COMMUNICATORS; i++) {
        if (comms[i] != MPI_COMM_NULL) {
            MPI_Comm_free(&comms[i]);
        }
    }
    return outcome;
}

static int count_freed(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    ++*(int *)value;
    return MPI_SUCCESS;
}

/* The private duplicate: one a communicator, not inherited by duplicates, and freed with its communicator. */
static verify_outcome freed_communicator(const collwise_algorithm *algorithm, MPI_Comm world,
                                         char complaint[VERIFY_TEXT]) {
    MPI_Comm comm, copy;
    int key, freed = 0, is_own, is_kept, is_shared;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_freed, &key, NULL);
    MPI_Comm_dup(world, &comm);
    verify_outcome outcome = verify_some_call(algorithm, 3, comm, complaint);
    MPI_Comm private = collwise_private(comm);
    MPI_Comm_set_attr(private, key, &freed);
    MPI_Comm_compare(private, comm, &is_own);
    MPI_Comm_compare(private, collwise_private(comm), &is_kept);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_compare(private, collwise_private(copy), &is_shared);
    MPI_Comm_free(&comm);
    const char *wrong = is_own != MPI_CONGRUENT      ? "the private communicator is no duplicate"
                        : is_kept != MPI_IDENT       ? "a communicator has two private duplicates"
                        : is_shared != MPI_CONGRUENT ? "two communicators share a private duplicate"
                        : freed != 1                 ? "the private duplicate was not freed with its communicator"
                                                     : NULL;
    if (verify_some_call(algorithm, 4, copy, complaint) == VERIFY_WRONG) {
        outcome = VERIFY_WRONG;
    }
    if (wrong != NULL) {
        snprintf(complaint, VERIFY_TEXT, "%s", wrong);
        outcome = VERIFY_WRONG;
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&key);
    return outcome;
}

/* Powers of two, since some algorithms need that. */
enum { MAX_PROCS = 8, MAX_PROCS_WITH_THREADS = 4 };

static const struct {
    const char *name;
    verify_isolation_test *run;
    int max_procs;
} tests[] = {
    {"wildcard_receive", wildcard_receive, MAX_PROCS},
    {"pending_message", pending_message, MAX_PROCS},
    {"overlapping_communicators", overlapping_communicators, MAX_PROCS},
    {"freed_communicator", freed_communicator, MAX_PROCS},
    {"two_threads", verify_two_threads, MAX_PROCS_WITH_THREADS},
};

const char *verify_isolation_name(int test) {
    return test < (int)(sizeof tests / sizeof *tests) ? tests[test].name : NULL;
}

static int usable_procs(int world_procs, int most) {
    while (most > world_procs) {
        most /= 2;
    }
    return most;
}

void verify_isolation(int test, int world_procs) {
    verify_tally tally;
    char what[VERIFY_TEXT], complaint[VERIFY_TEXT];
    int procs = usable_procs(world_procs, tests[test].max_procs);
    MPI_Comm comm = verify_processes(MPI_COMM_WORLD, 0, procs, false);
    verify_start(&tally);
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        snprintf(what, VERIFY_TEXT, "%s %s", each->collective, each->name);
        verify_say_started("isolation", tests[test].name, procs, what);
        if (comm == MPI_COMM_NULL) {
            verify_skip(&tally, 1);
        } else {
            verify_count(&tally, what, tests[test].run(each, comm, complaint), complaint);
        }
    }
    verify_report(&tally, "isolation", tests[test].name);
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_free(&comm);
    }
}
