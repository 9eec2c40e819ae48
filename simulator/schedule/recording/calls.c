/* The recording MPI (mpi.h): calls become words, and splits of communicators wait for the other members. */
#include "recording.h"

#include <stdlib.h>
#include <string.h>

/* --- Data of the program's own ------------------------------------------------------------------------------------ */

static void deposit(const void *data, size_t bytes, int destination) {
    own_data *item = recording_checked(malloc(sizeof *item + bytes));
    *item = (own_data){.source = recording_now->now->rank, .destination = destination, .bytes = bytes};
    memcpy(item->data, data, bytes);
    own_data **end = &recording_now->in_transit;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = item;
    recording_now->changes++;
}

static own_data **find_own_data(int source) {
    own_data **item = &recording_now->in_transit;
    while (*item != NULL && ((*item)->source != source || (*item)->destination != recording_now->now->rank)) {
        item = &(*item)->next;
    }
    return item;
}

/* The sender is recorded first if it has not been. */
static void collect(void *data, size_t bytes, int source) {
    recording_require_others(recording_now);
    if (*find_own_data(source) == NULL && recording_now->progress_of[source] == NOT_YET &&
        recording_now->fibers == NULL) {
        recording_process(recording_now, source);
    }
    while (*find_own_data(source) == NULL && recording_now->fibers != NULL &&
           recording_now->progress_of[source] != RECORDED) {
        recording_wait_for_others(recording_now);
    }
    own_data **item = find_own_data(source), *found = *item;
    if (found == NULL && recording_now->max_words > 0) {
        recording_cut(recording_now);
    }
    if (found == NULL || found->bytes != bytes) {
        recording_fail(recording_now,
                       "process %d's control flow depends on data of process %d that it does not have yet",
                       recording_now->now->rank, source);
    }
    memcpy(data, found->data, bytes);
    *item = found->next;
    free(found);
}

void recording_make_communicators(recording *to) {
    if (to->communicators == NULL) {
        to->communicators = recording_checked(recording_communicators_make(to->made->procs));
    }
}

/* A member's rank among all processes. */
int recording_process_of(MPI_Comm comm, int rank) {
    if (comm == MPI_COMM_WORLD) {
        return rank;
    }
    int size = recording_communicators_size(recording_now->communicators, comm);
    if (rank < 0 || rank >= size) {
        recording_fail(recording_now, "process %d names rank %d of a communicator of %d processes",
                       recording_now->now->rank, rank, size);
    }
    return recording_communicators_member(recording_now->communicators, comm, rank);
}

/* The process's own rank. */
int recording_rank_in(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return recording_now->now->rank;
    }
    int is_one = recording_communicators_size(recording_now->communicators, comm) > 0;
    int rank = is_one ? recording_communicators_rank(recording_now->communicators, comm, recording_now->now->rank) : -1;
    if (rank < 0) {
        recording_fail(recording_now, "process %d uses a communicator to which it does not belong",
                       recording_now->now->rank);
    }
    return rank;
}

static uint32_t recording_relative(int peer) {
    const schedule *made = recording_now->made;
    int rank = recording_now->now->rank, distance = made->is_mirrored ? peer ^ rank : peer - rank;
    return (uint32_t)(distance < 0 ? distance + made->procs : distance);
}

static void record_send(schedule_kind kind, const void *data, int bytes, int destination) {
    recording_now->made->messages++;
    recording_now->made->bytes += (uint64_t)bytes;
    if (bytes > 0 && !recording_is_payload(data)) {
        deposit(data, (size_t)bytes, destination);
    }
    recording_add(kind, recording_relative(destination), recording_size_number(recording_now, (uint64_t)bytes));
    recording_post(1, recording_now->now->rank, destination, (uint64_t)bytes,
                   kind == SCHEDULE_SEND ? -1 : recording_now->now->requests);
}

static void record_receive(schedule_kind kind, void *data, int bytes, int source) {
    recording_add(kind, recording_relative(source), recording_size_number(recording_now, (uint64_t)bytes));
    recording_post(0, source, recording_now->now->rank, (uint64_t)bytes,
                   kind == SCHEDULE_RECEIVE ? -1 : recording_now->now->requests);
    if (bytes > 0 && !recording_is_payload(data)) {
        collect(data, (size_t)bytes, source);
    }
}

static void record_wait(int64_t first, uint32_t count) {
    process *now = recording_now->now;
    uint32_t back = (uint32_t)(now->requests - first);
    now->max_requests = back > now->max_requests ? back : now->max_requests;
    recording_add(SCHEDULE_WAIT, count, back);
}

/* --- The recording MPI -------------------------------------------------------------------------------------------- */

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    *rank = recording_rank_in(comm);
    return 0;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    *size = collwise_size_of(comm);
    return 0;
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
    recording *to = recording_now;
    recording_require_others(to);
    recording_make_communicators(to);
    recording_make_fibers(to);
    int rank = recording_rank_in(comm);
    if (colour < 0 && colour != MPI_UNDEFINED) {
        recording_fail(to, "process %d splits a communicator by colour %d, which is negative", to->now->rank, colour);
    }
    if (!recording_communicators_divide(to->communicators, comm, rank, colour, MPI_UNDEFINED, key)) {
        recording_fail(to, "out of memory");
    }
    to->changes++;
    while ((*part = recording_communicators_part(to->communicators, comm, rank)) == COMMUNICATORS_UNKNOWN) {
        recording_wait_for_others(to);
    }
    return 0;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    (void)info;
    if (type != MPI_COMM_TYPE_SHARED && type != MPI_UNDEFINED) {
        recording_fail(recording_now, "process %d splits a communicator by type %d, which is not MPI_COMM_TYPE_SHARED",
                       recording_now->now->rank, type);
    }
    const int32_t *node_of = recording_now->wanted->node_of;
    int node = node_of == NULL ? recording_now->now->rank : node_of[recording_now->now->rank];
    return MPI_Comm_split(comm, type == MPI_UNDEFINED ? MPI_UNDEFINED : node, key, part);
}

int MPI_Comm_free(MPI_Comm *comm) {
    recording_rank_in(*comm);
    *comm = MPI_COMM_NULL;
    return 0;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm) {
    (void)type, (void)tag;
    record_send(SCHEDULE_SEND, data, count, recording_process_of(comm, destination));
    return 0;
}

int MPI_Recv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    (void)type, (void)tag, (void)status;
    record_receive(SCHEDULE_RECEIVE, data, count, recording_process_of(comm, source));
    return 0;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
              MPI_Request *request) {
    (void)type, (void)tag;
    record_send(SCHEDULE_START_SEND, data, count, recording_process_of(comm, destination));
    *request = recording_now->now->requests++;
    return 0;
}

int MPI_Issend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
               MPI_Request *request) {
    (void)type, (void)tag;
    recording_now->made->has_synchronous = 1;
    record_send(SCHEDULE_START_SYNCHRONOUS, data, count, recording_process_of(comm, destination));
    *request = recording_now->now->requests++;
    return 0;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)type, (void)tag;
    record_receive(SCHEDULE_START_RECEIVE, data, count, recording_process_of(comm, source));
    *request = recording_now->now->requests++;
    return 0;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                 MPI_Status *status) {
    MPI_Request both[2];
    (void)status;
    MPI_Irecv(receive, receive_count, receive_type, source, receive_tag, comm, &both[0]);
    MPI_Isend(send, send_count, send_type, destination, send_tag, comm, &both[1]);
    record_wait(both[0], 2);
    return 0;
}

/* Requests with successive numbers take one word together. */
int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
    (void)statuses;
    for (int first = 0, next; first < count; first = next) {
        next = first + 1;
        if (requests[first] == MPI_REQUEST_NULL) {
            continue;
        }
        while (next < count && requests[next] == requests[next - 1] + 1) {
            next++;
        }
        record_wait(requests[first], (uint32_t)(next - first));
    }
    return 0;
}

/* The request of the list that has completed first, -1 if none has; of a process alone any one. */
static int first_complete(const recording *to, int count, const MPI_Request *requests) {
    uint64_t earliest = UINT64_MAX, when = 0;
    int first = -1;
    for (int i = 0; i < count; i++) {
        int is_there =
            to->arrivals == NULL || recording_arrivals_is_complete(to->arrivals, to->now->rank, requests[i], &when);
        if (requests[i] != MPI_REQUEST_NULL && is_there && when < earliest) {
            earliest = when;
            first = i;
        }
    }
    return first;
}

int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status) {
    recording *to = recording_now;
    int found = 0;
    (void)status;
    if (to->arrivals == NULL && to->processes_alone == 0) {
        recording_fail(to, "process %d waits for any of several messages outside a sequence of tasks", to->now->rank);
    }
    while ((found = first_complete(to, count, requests)) < 0) {
        recording_wait_for_messages(to);
    }
    record_wait(requests[found], 1);
    if (to->arrivals != NULL) {
        recording_arrivals_take(to->arrivals, to->now->rank, requests[found]);
    }
    requests[found] = MPI_REQUEST_NULL;
    *index = found;
    return 0;
}

int MPI_Testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status) {
    (void)count, (void)requests, (void)status;
    *index = MPI_UNDEFINED;
    *flag = 0;
    return 0;
}
