/* MPI's own non-blocking collectives as rounds. The collectives that libcollwise replaces are blocking ones. */
#include "tasks.h"

int collwise_has_library(void) { return COLLWISE_LIBRARY_WAITS_IN_LISTS; }

static void start_bcast(collwise_requests *requests, const collwise_action *the) {
    PMPI_Ibcast(the->data, (int)the->size, MPI_BYTE, the->peer, requests->comm, collwise_next_request(requests));
}

static void start_reduce(collwise_requests *requests, const collwise_action *the) {
    int at_root = collwise_rank_in(requests->comm) == the->peer;
    PMPI_Ireduce(at_root ? MPI_IN_PLACE : the->data, at_root ? the->data : NULL, (int)the->size, the->op->type,
                 the->op->op, the->peer, requests->comm, collwise_next_request(requests));
}

static void start_gather(collwise_requests *requests, const collwise_action *the) {
    int rank = collwise_rank_in(requests->comm), at_root = rank == the->peer;
    PMPI_Igatherv(at_root ? MPI_IN_PLACE : the->data, the->counts[rank], MPI_BYTE, the->data, the->counts,
                  the->displacements, MPI_BYTE, the->peer, requests->comm, collwise_next_request(requests));
}

static void start_scatter(collwise_requests *requests, const collwise_action *the) {
    int rank = collwise_rank_in(requests->comm), at_root = rank == the->peer;
    PMPI_Iscatterv(the->data, the->counts, the->displacements, MPI_BYTE, at_root ? MPI_IN_PLACE : the->data,
                   the->counts[rank], MPI_BYTE, the->peer, requests->comm, collwise_next_request(requests));
}

static void start_allgather(collwise_requests *requests, const collwise_action *the) {
    PMPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, the->data, the->counts, the->displacements, MPI_BYTE, requests->comm,
                     collwise_next_request(requests));
}

static void start_alltoall(collwise_requests *requests, const collwise_action *the) {
    PMPI_Ialltoallv(the->from, the->counts, the->displacements, MPI_BYTE, the->data, the->counts, the->displacements,
                    MPI_BYTE, requests->comm, collwise_next_request(requests));
}

static void start_barrier(collwise_requests *requests, const collwise_action *the) {
    (void)the;
    PMPI_Ibarrier(requests->comm, collwise_next_request(requests));
}

static void add(collwise_rounds *to, collwise_action action) {
    action.kind = COLLWISE_CALL;
    collwise_add_action(to, action);
    collwise_add_round(to);
}

void collwise_add_library_bcast(collwise_rounds *to, char *data, size_t bytes, int root) {
    add(to, (collwise_action){.call = start_bcast, .data = data, .size = bytes, .peer = root});
}

void collwise_add_library_reduce(collwise_rounds *to, char *sum, size_t elements, const collwise_operation *op,
                                 int root) {
    add(to, (collwise_action){.call = start_reduce, .data = sum, .size = elements, .op = op, .peer = root});
}

void collwise_add_library_gather(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                 int root) {
    add(to, (collwise_action){
                .call = start_gather, .data = blocks, .counts = counts, .displacements = displacements, .peer = root});
}

void collwise_add_library_scatter(collwise_rounds *to, char *blocks, const int *counts, const int *displacements,
                                  int root) {
    add(to, (collwise_action){
                .call = start_scatter, .data = blocks, .counts = counts, .displacements = displacements, .peer = root});
}

void collwise_add_library_allgather(collwise_rounds *to, char *all, const int *counts, const int *displacements) {
    add(to, (collwise_action){.call = start_allgather, .data = all, .counts = counts, .displacements = displacements});
}

void collwise_add_library_alltoall(collwise_rounds *to, const char *send, char *receive, const int *counts,
                                   const int *displacements) {
    add(to,
        (collwise_action){
            .call = start_alltoall, .from = send, .data = receive, .counts = counts, .displacements = displacements});
}

void collwise_add_library_barrier(collwise_rounds *to) { add(to, (collwise_action){.call = start_barrier}); }
