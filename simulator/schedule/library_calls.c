/* The collectives of recording/mpi.h, and MPI's reductions as mock-ups call them (mock_ups.h): each call is recorded as
 * the algorithm that the library runs for it. */
#include "library_calls.h"
#include "mock_ups.h"
#include "recording/recording.h"

static void record(collwise_collective kind, size_t message_bytes, int root, int in_place) {
    recording_now->record_library_call(
        &(recorded_call){.kind = kind, .message_bytes = message_bytes, .root = root, .in_place = in_place});
}

/* Offsets of blocks with these counts; without them all have the same. */
static size_t *offsets_of(const int *counts, size_t same) {
    size_t procs = (size_t)collwise_size_of(MPI_COMM_WORLD);
    size_t *offsets = collwise_allocate((procs + 1) * sizeof *offsets, MPI_COMM_WORLD);
    offsets[0] = 0;
    for (size_t i = 0; i < procs; i++) {
        offsets[i + 1] = offsets[i] + (counts == NULL ? same : (size_t)counts[i]);
    }
    return offsets;
}

/* The counts are significant at the root only. */
static void record_rooted_by_counts(collwise_collective kind, const int *counts, int own_count, int root,
                                    int in_place) {
    int rank = collwise_rank_in(MPI_COMM_WORLD);
    size_t own = (size_t)(rank == root ? counts[rank] : own_count);
    size_t *offsets = offsets_of(rank == root ? counts : NULL, own);
    recording_now->record_library_call(
        &(recorded_call){.kind = kind, .message_bytes = own, .root = root, .offsets = offsets, .in_place = in_place});
    recording_free(offsets);
}

static void record_by_counts(collwise_collective kind, const int *counts, int in_place) {
    size_t procs = (size_t)collwise_size_of(MPI_COMM_WORLD), *offsets = offsets_of(counts, 0);
    recording_now->record_library_call(&(recorded_call){
        .kind = kind, .message_bytes = offsets[procs] / procs, .offsets = offsets, .in_place = in_place});
    recording_free(offsets);
}

static void record_reduction(collwise_collective kind, size_t elements, const collwise_operation *op, int root,
                             int in_place) {
    recording_now->record_library_call(&(recorded_call){
        .kind = kind, .message_bytes = elements * op->element_bytes, .root = root, .op = op, .in_place = in_place});
}

/* --- The recording MPI (recording/mpi.h) -------------------------------------------------------------------------- */

int PMPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    (void)data, (void)type, (void)comm;
    record(COLLWISE_BCAST, (size_t)count, root, 0);
    return 0;
}

int PMPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm) {
    int at_root = collwise_rank_in(comm) == root;
    (void)send_type, (void)receive, (void)receive_type;
    record(COLLWISE_GATHER, (size_t)(at_root ? receive_count : send_count), root, send == MPI_IN_PLACE);
    return 0;
}

int PMPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                 const int displacements[], MPI_Datatype receive_type, int root, MPI_Comm comm) {
    (void)send_type, (void)receive, (void)displacements, (void)receive_type, (void)comm;
    record_rooted_by_counts(COLLWISE_GATHERV, receive_counts, send_count, root, send == MPI_IN_PLACE);
    return 0;
}

int PMPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, int root, MPI_Comm comm) {
    int at_root = collwise_rank_in(comm) == root;
    (void)send, (void)send_type, (void)receive_type;
    record(COLLWISE_SCATTER, (size_t)(at_root ? send_count : receive_count), root, receive == MPI_IN_PLACE);
    return 0;
}

int PMPI_Scatterv(const void *send, const int send_counts[], const int displacements[], MPI_Datatype send_type,
                  void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm) {
    (void)send, (void)displacements, (void)send_type, (void)receive_type, (void)comm;
    record_rooted_by_counts(COLLWISE_SCATTERV, send_counts, receive_count, root, receive == MPI_IN_PLACE);
    return 0;
}

int PMPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                   MPI_Datatype receive_type, MPI_Comm comm) {
    (void)send_count, (void)send_type, (void)receive, (void)receive_type, (void)comm;
    record(COLLWISE_ALLGATHER, (size_t)receive_count, 0, send == MPI_IN_PLACE);
    return 0;
}

int PMPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *receive, const int receive_counts[],
                    const int displacements[], MPI_Datatype receive_type, MPI_Comm comm) {
    (void)send_count, (void)send_type, (void)receive, (void)displacements, (void)receive_type, (void)comm;
    record_by_counts(COLLWISE_ALLGATHERV, receive_counts, send == MPI_IN_PLACE);
    return 0;
}

int PMPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm) {
    (void)send_count, (void)send_type, (void)receive, (void)receive_type, (void)comm;
    record(COLLWISE_ALLTOALL, (size_t)receive_count, 0, send == MPI_IN_PLACE);
    return 0;
}

int PMPI_Alltoallv(const void *send, const int send_counts[], const int send_displacements[], MPI_Datatype send_type,
                   void *receive, const int receive_counts[], const int receive_displacements[],
                   MPI_Datatype receive_type, MPI_Comm comm) {
    (void)send_counts, (void)send_displacements, (void)send_type, (void)receive, (void)receive_displacements;
    (void)receive_type, (void)comm;
    record_by_counts(COLLWISE_ALLTOALLV, receive_counts, send == MPI_IN_PLACE);
    return 0;
}

/* --- MPI's reductions (mock_ups.h) -------------------------------------------------------------------------------- */

void collwise_mpi_reduce(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                         MPI_Comm comm) {
    (void)comm;
    record_reduction(COLLWISE_REDUCE, elements, op, root, data == result);
}

void collwise_mpi_allreduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                            MPI_Comm comm) {
    (void)comm;
    record_reduction(COLLWISE_ALLREDUCE, elements, op, 0, data == result);
}

void collwise_mpi_reduce_scatter(const char *data, char *mine, const int *counts, const collwise_operation *op,
                                 MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm), *offsets = offsets_of(counts, 0);
    recording_now->record_library_call(&(recorded_call){.kind = COLLWISE_REDUCE_SCATTER,
                                                        .message_bytes = offsets[procs] * op->element_bytes,
                                                        .offsets = offsets,
                                                        .op = op,
                                                        .in_place = data == mine});
    recording_free(offsets);
}

void collwise_mpi_reduce_scatter_block(const char *data, char *mine, size_t block_elements,
                                       const collwise_operation *op, MPI_Comm comm) {
    size_t *offsets = offsets_of(NULL, block_elements);
    (void)data, (void)mine, (void)comm;
    recording_now->record_library_call(&(recorded_call){.kind = COLLWISE_REDUCE_SCATTER_BLOCK,
                                                        .message_bytes = block_elements * op->element_bytes,
                                                        .offsets = offsets,
                                                        .op = op});
    recording_free(offsets);
}

void collwise_mpi_exscan(const char *data, char *result, size_t elements, const collwise_operation *op, MPI_Comm comm) {
    (void)data, (void)result, (void)comm;
    record_reduction(COLLWISE_EXSCAN, elements, op, 0, 0);
}

collwise_operation collwise_bitwise_or(MPI_Comm comm) {
    (void)comm;
    return (collwise_operation){.element_bytes = 1, .commutative = 1, .contiguous = 1};
}
