/* The calls of collwise.h: user arguments to bytes, the private communicator, then the algorithm. */
#include "internal.h"

#include <string.h>

const collwise_algorithm *collwise_find(const char *collective, const char *name) {
    for (const collwise_algorithm *entry = collwise_registry; entry->collective != NULL; entry++) {
        if (strcmp(entry->collective, collective) == 0 && strcmp(entry->name, name) == 0) {
            return entry;
        }
    }
    return NULL;
}

static collwise_parameters completed(const collwise_algorithm *algorithm, collwise_parameters with) {
    if (with.fanout == 0) {
        with.fanout = algorithm->default_fanout;
    }
    return with;
}

void collwise_bcast(const collwise_algorithm *algorithm, void *buffer, int count, MPI_Datatype type, int root,
                    MPI_Comm comm, collwise_parameters with) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    collwise_bytes message = collwise_bytes_of(buffer, (size_t)count, type, comm);
    if (procs > 1 && message.bytes > 0) {
        if (rank == root) {
            collwise_bytes_pack(&message, buffer, (size_t)count, type, comm);
        }
        algorithm->bcast(message.data, message.bytes, root, collwise_private(comm), completed(algorithm, with));
        if (rank != root) {
            collwise_bytes_unpack(&message, buffer, (size_t)count, type, comm);
        }
    }
    collwise_bytes_release(&message);
}

static void gather_at_root(const collwise_algorithm *algorithm, const void *send, int send_count,
                           MPI_Datatype send_type, void *receive, int receive_count, MPI_Datatype receive_type,
                           int root, MPI_Comm comm, collwise_parameters with) {
    int procs;
    MPI_Comm_size(comm, &procs);
    size_t all_count = (size_t)procs * (size_t)receive_count;
    collwise_bytes all = collwise_bytes_of(receive, all_count, receive_type, comm);
    size_t block_bytes = all.bytes / (size_t)procs;
    if (block_bytes > 0) {
        if (send == MPI_IN_PLACE) {
            MPI_Aint low, extent;
            MPI_Type_get_extent(receive_type, &low, &extent);
            send = (char *)receive + (MPI_Aint)root * receive_count * extent;
            send_count = receive_count;
            send_type = receive_type;
        }
        collwise_bytes mine = collwise_bytes_of(send, (size_t)send_count, send_type, comm);
        collwise_bytes_pack(&mine, send, (size_t)send_count, send_type, comm);
        char *own_block = all.data + (size_t)root * block_bytes;
        memmove(own_block, mine.data, block_bytes);
        if (procs > 1) {
            algorithm->gather(own_block, all.data, block_bytes, root, collwise_private(comm),
                              completed(algorithm, with));
        }
        collwise_bytes_unpack(&all, receive, all_count, receive_type, comm);
        collwise_bytes_release(&mine);
    }
    collwise_bytes_release(&all);
}

void collwise_gather(const collwise_algorithm *algorithm, const void *send, int send_count, MPI_Datatype send_type,
                     void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                     collwise_parameters with) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank == root) {
        gather_at_root(algorithm, send, send_count, send_type, receive, receive_count, receive_type, root, comm, with);
        return;
    }
    collwise_bytes mine = collwise_bytes_of(send, (size_t)send_count, send_type, comm);
    if (mine.bytes > 0) {
        collwise_bytes_pack(&mine, send, (size_t)send_count, send_type, comm);
        algorithm->gather(mine.data, NULL, mine.bytes, root, collwise_private(comm), completed(algorithm, with));
    }
    collwise_bytes_release(&mine);
}
