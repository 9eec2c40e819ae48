/* The recording MPI (mpi.h): calls become words. */
#include "recording.h"

uint32_t recording_relative(int peer) {
    const schedule *made = recording_now->made;
    int rank = recording_now->now.rank, distance = made->is_mirrored ? peer ^ rank : peer - rank;
    return (uint32_t)(distance < 0 ? distance + made->procs : distance);
}

static void record_send(schedule_kind kind, const void *data, int bytes, int destination) {
    recording_now->now.messages++;
    recording_now->now.bytes += (uint64_t)bytes;
    if (bytes > 0 && !recording_is_payload(data)) {
        recording_deposit(data, (size_t)bytes, destination);
    }
    recording_add(kind, recording_relative(destination), recording_size_number(recording_now, (uint64_t)bytes));
}

static void record_receive(schedule_kind kind, void *data, int bytes, int source) {
    recording_add(kind, recording_relative(source), recording_size_number(recording_now, (uint64_t)bytes));
    if (bytes > 0 && !recording_is_payload(data)) {
        recording_collect(data, (size_t)bytes, source);
    }
}

void recording_wait(int64_t first, uint32_t count) {
    process *now = &recording_now->now;
    uint32_t back = (uint32_t)(now->requests - first), *most = now->fork > 0 ? &now->in_strand : &now->max_requests;
    *most = back > *most ? back : *most;
    recording_add(SCHEDULE_WAIT, count, back);
}

/* --- The recording MPI -------------------------------------------------------------------------------------------- */

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    *rank = recording_rank_in(comm);
    return 0;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    *size = recording_size_of(comm);
    return 0;
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *part) {
    recording *to = recording_now;
    if (colour < 0 && colour != MPI_UNDEFINED) {
        recording_fail(to, "process %d splits a communicator by colour %d, which is negative", to->now.rank, colour);
    }
    *part = recording_split(to, comm, colour, key);
    return 0;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *part) {
    (void)info;
    if (type != MPI_COMM_TYPE_SHARED && type != MPI_UNDEFINED) {
        recording_fail(recording_now, "process %d splits a communicator by type %d, which is not MPI_COMM_TYPE_SHARED",
                       recording_now->now.rank, type);
    }
    const int32_t *node_of = recording_now->wanted->node_of;
    int node = node_of == NULL ? recording_now->now.rank : node_of[recording_now->now.rank];
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
    *request = recording_now->now.requests++;
    return 0;
}

int MPI_Issend(const void *data, int count, MPI_Datatype type, int destination, int tag, MPI_Comm comm,
               MPI_Request *request) {
    (void)type, (void)tag;
    recording_now->made->has_synchronous = 1;
    record_send(SCHEDULE_START_SYNCHRONOUS, data, count, recording_process_of(comm, destination));
    *request = recording_now->now.requests++;
    return 0;
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)type, (void)tag;
    record_receive(SCHEDULE_START_RECEIVE, data, count, recording_process_of(comm, source));
    *request = recording_now->now.requests++;
    return 0;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int destination, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                 MPI_Status *status) {
    MPI_Request both[2];
    (void)status;
    MPI_Irecv(receive, receive_count, receive_type, source, receive_tag, comm, &both[0]);
    MPI_Isend(send, send_count, send_type, destination, send_tag, comm, &both[1]);
    recording_wait(both[0], 2);
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
        recording_wait(requests[first], (uint32_t)(next - first));
    }
    return 0;
}
