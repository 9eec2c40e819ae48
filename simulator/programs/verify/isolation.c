/* Collectives must not touch the program's own messages, nor one another across communicators, and leave nothing
 * behind when a communicator is freed. */
#include "verify.h"

#include <stdio.h>

MPI_Comm verify_first_processes(int procs, bool reversed) {
    int rank;
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < procs ? 0 : MPI_UNDEFINED, reversed ? -rank : rank, &comm);
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

static bool some_call_is_right(const collwise_algorithm *algorithm, unsigned serial, MPI_Comm comm,
                               char complaint[VERIFY_TEXT]) {
    int procs;
    MPI_Comm_size(comm, &procs);
    verify_call call = {.algorithm = algorithm,
                        .serial = serial,
                        .root = (int)(serial % (unsigned)procs),
                        .ints = 500,
                        .at_root = VERIFY_INT,
                        .elsewhere = VERIFY_INT,
                        .with = {.segment_bytes = 700}};
    return verify_call_is_right(&call, comm, complaint);
}

/* A receive that matches anything waits on the program's communicator during the collective. */
static const char *wildcard_receive(const collwise_algorithm *algorithm, MPI_Comm world, char complaint[VERIFY_TEXT]) {
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
    bool right = some_call_is_right(algorithm, 1, comm, complaint);
    MPI_Send(&message, 1, MPI_INT, (rank + 1) % procs, TAG, comm);
    MPI_Wait(&receive, &status);
    if (status.MPI_TAG != TAG || status.MPI_SOURCE != before || got[0] != 1000 + before) {
        snprintf(complaint, VERIFY_TEXT, "the program's receive on rank %d got another message", rank);
        right = false;
    }
    MPI_Comm_free(&comm);
    return right ? NULL : complaint;
}

/* A message of the program, with the tag that the collectives use, lies unreceived during the collective. */
static const char *pending_message(const collwise_algorithm *algorithm, MPI_Comm world, char complaint[VERIFY_TEXT]) {
    int procs, rank, got;
    MPI_Comm comm;
    MPI_Comm_dup(world, &comm);
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    int message = 2000 + rank, before = (rank + procs - 1) % procs;
    MPI_Request send;
    MPI_Isend(&message, 1, MPI_INT, (rank + 1) % procs, COLLWISE_TAG, comm, &send);
    bool right = some_call_is_right(algorithm, 2, comm, complaint);
    MPI_Recv(&got, 1, MPI_INT, before, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    if (got != 2000 + before) {
        snprintf(complaint, VERIFY_TEXT, "the program's message to rank %d was not received whole", rank);
        right = false;
    }
    MPI_Comm_free(&comm);
    return right ? NULL : complaint;
}

/* All but the last process, all but the first in reverse, and a duplicate of all, by turns with nothing between. */
static const char *overlapping_communicators(const collwise_algorithm *algorithm, MPI_Comm world,
                                             char complaint[VERIFY_TEXT]) {
    enum { COMMUNICATORS = 3, TURNS = 6 };
    MPI_Comm comms[COMMUNICATORS];
    int procs, rank;
    bool right = true;
    MPI_Comm_size(world, &procs);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_split(world, rank < procs - 1 ? 0 : MPI_UNDEFINED, rank, &comms[0]);
    MPI_Comm_split(world, rank > 0 ? 0 : MPI_UNDEFINED, -rank, &comms[1]);
    MPI_Comm_dup(world, &comms[2]);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        MPI_Comm comm = comms[turn % COMMUNICATORS];
        if (comm != MPI_COMM_NULL && right) {
            right = some_call_is_right(algorithm, turn, comm, complaint);
        }
    }
    for (int i = 0; i < COMMUNICATORS; i++) {
        if (comms[i] != MPI_COMM_NULL) {
            MPI_Comm_free(&comms[i]);
        }
    }
    return right ? NULL : complaint;
}

static int count_freed(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    ++*(int *)value;
    return MPI_SUCCESS;
}

/* The private duplicate: one a communicator, not inherited by duplicates, and freed with its communicator. */
static const char *freed_communicator(const collwise_algorithm *algorithm, MPI_Comm world,
                                      char complaint[VERIFY_TEXT]) {
    MPI_Comm comm, copy;
    int key, freed = 0, is_own, is_kept, is_shared;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_freed, &key, NULL);
    MPI_Comm_dup(world, &comm);
    bool right = some_call_is_right(algorithm, 3, comm, complaint);
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
                        : right                      ? NULL
                                                     : complaint;
    if (!some_call_is_right(algorithm, 4, copy, complaint) && wrong == NULL) {
        wrong = complaint;
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&key);
    return wrong;
}

typedef const char *isolation_test(const collwise_algorithm *algorithm, MPI_Comm world, char complaint[VERIFY_TEXT]);

static const struct {
    const char *name;
    isolation_test *run;
} tests[] = {
    {"wildcard_receive", wildcard_receive},
    {"pending_message", pending_message},
    {"overlapping_communicators", overlapping_communicators},
    {"freed_communicator", freed_communicator},
};

const char *verify_isolation_name(int test) {
    return test < (int)(sizeof tests / sizeof *tests) ? tests[test].name : NULL;
}

void verify_isolation(int test, int procs) {
    verify_tally tally;
    char what[VERIFY_TEXT], complaint[VERIFY_TEXT];
    MPI_Comm comm = verify_first_processes(procs, false);
    verify_start(&tally);
    for (const collwise_algorithm *each = collwise_registry; each->collective != NULL; each++) {
        snprintf(what, VERIFY_TEXT, "%s %s", each->collective, each->name);
        verify_say_started("isolation", tests[test].name, procs, what);
        verify_count(&tally, what, tests[test].run(each, comm, complaint));
    }
    verify_report(&tally, "isolation", tests[test].name);
    MPI_Comm_free(&comm);
}
