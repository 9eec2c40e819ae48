/* Functions that answer what algorithms ask of MPI in every call from what is known already. The linker puts them in
 * place of MPI's in libcollwise (--wrap): a short call takes less time than the questions would. */
#include "fast_path.h"

#ifndef SMPI_SHARED_MALLOC

#include <stddef.h>

static int is_current(MPI_Comm comm) {
    const interpose_current_call *now = interpose_stored->current;
    return now != NULL && (comm == now->private || comm == now->comm);
}

MPI_Comm __wrap_collwise_private(MPI_Comm comm);
MPI_Comm __real_collwise_private(MPI_Comm comm);
MPI_Comm __wrap_collwise_private(MPI_Comm comm) {
    const interpose_current_call *now = interpose_stored->current;
    return now != NULL && comm == now->comm ? now->private : __real_collwise_private(comm);
}

int __wrap_MPI_Comm_rank(MPI_Comm comm, int *rank);
int __wrap_MPI_Comm_rank(MPI_Comm comm, int *rank) {
    if (is_current(comm)) {
        *rank = interpose_stored->current->rank;
        return MPI_SUCCESS;
    }
    return PMPI_Comm_rank(comm, rank);
}

int __wrap_MPI_Comm_size(MPI_Comm comm, int *procs);
int __wrap_MPI_Comm_size(MPI_Comm comm, int *procs) {
    if (is_current(comm)) {
        *procs = interpose_stored->current->procs;
        return MPI_SUCCESS;
    }
    return PMPI_Comm_size(comm, procs);
}

/* --- Named datatypes and operations, which are never freed ---------------------------------------------------------
 */

int __wrap_MPI_Type_size_x(MPI_Datatype type, MPI_Count *bytes);
int __wrap_MPI_Type_size_x(MPI_Datatype type, MPI_Count *bytes) {
    const interpose_cached_type *known = interpose_known_type(type);
    if (known != NULL) {
        *bytes = known->bytes;
        return MPI_SUCCESS;
    }
    return PMPI_Type_size_x(type, bytes);
}

int __wrap_MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent);
int __wrap_MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent) {
    const interpose_cached_type *known = interpose_known_type(type);
    if (known != NULL) {
        *low = known->low;
        *extent = known->extent;
        return MPI_SUCCESS;
    }
    return PMPI_Type_get_extent(type, low, extent);
}

int __wrap_MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
int __wrap_MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner) {
    if (interpose_known_type(type) != NULL) {
        *integers = *addresses = *types = 0;
        *combiner = MPI_COMBINER_NAMED;
        return MPI_SUCCESS;
    }
    return PMPI_Type_get_envelope(type, integers, addresses, types, combiner);
}

int __wrap_collwise_is_contiguous(MPI_Datatype type);
int __real_collwise_is_contiguous(MPI_Datatype type);
int __wrap_collwise_is_contiguous(MPI_Datatype type) {
    const interpose_cached_type *known = interpose_known_type(type);
    return known != NULL ? known->low == 0 && known->extent == known->bytes : __real_collwise_is_contiguous(type);
}

int __wrap_MPI_Op_commutative(MPI_Op op, int *commutes);
int __wrap_MPI_Op_commutative(MPI_Op op, int *commutes) {
    if (interpose_is_predefined(op)) {
        *commutes = 1;
        return MPI_SUCCESS;
    }
    return PMPI_Op_commutative(op, commutes);
}

/* --- Messages and sums of short ones ------------------------------------------------------------------------------ */

int __wrap_MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses);
int __wrap_MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses) {
    return count == 1 && statuses == MPI_STATUSES_IGNORE ? PMPI_Wait(requests, MPI_STATUS_IGNORE)
                                                         : PMPI_Waitall(count, requests, statuses);
}

/* Vectors of this length are summed in less time than MPI takes to look at the arguments. */
enum { SHORT_VECTOR = 32 };

#define SUM_OF(type)                                                                                                   \
    static int sum_of_##type##s(const type *from, type *to, int count) {                                               \
        for (int i = 0; i < count; i++) {                                                                              \
            to[i] += from[i];                                                                                          \
        }                                                                                                              \
        return MPI_SUCCESS;                                                                                            \
    }

SUM_OF(double)
SUM_OF(float)

int __wrap_MPI_Reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op);
int __wrap_MPI_Reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op) {
    if (op == MPI_SUM && count <= SHORT_VECTOR && type == MPI_DOUBLE) {
        return sum_of_doubles(from, to, count);
    }
    if (op == MPI_SUM && count <= SHORT_VECTOR && type == MPI_FLOAT) {
        return sum_of_floats(from, to, count);
    }
    return PMPI_Reduce_local(from, to, count, type, op);
}

char *__wrap_collwise_scratch(size_t bytes, MPI_Comm comm);
void __wrap_collwise_scratch_free(char *scratch);

/* --- Folds -------------------------------------------------------------------------------------------------------- */

collwise_fold __real_collwise_fold_of(collwise_fold_rule rule, int root, MPI_Comm comm);
collwise_fold __wrap_collwise_fold_of(collwise_fold_rule rule, int root, MPI_Comm comm);
collwise_fold __wrap_collwise_fold_of(collwise_fold_rule rule, int root, MPI_Comm comm) {
    interpose_cached_fold *last = &interpose_own_thread()->fold;
    int procs, rank;
    __wrap_MPI_Comm_size(comm, &procs);
    __wrap_MPI_Comm_rank(comm, &rank);
    if (last->procs != procs || last->fold.rank != rank || last->fold.rule != rule || last->fold.root != root) {
        *last = (interpose_cached_fold){procs, __real_collwise_fold_of(rule, root, comm)};
    }
    last->fold.comm = comm;
    return last->fold;
}

/* --- Trees -------------------------------------------------------------------------------------------------------- */

collwise_tree __wrap_collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree);
collwise_tree __wrap_collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree) {
    interpose_cached_tree *last = &interpose_own_thread()->tree;
    int procs, rank;
    __wrap_MPI_Comm_size(comm, &procs);
    __wrap_MPI_Comm_rank(comm, &rank);
    if (last->procs != procs || last->rank != rank || last->degree != degree || last->tree.topology != topology ||
        last->tree.root != root) {
        *last = (interpose_cached_tree){procs, rank, degree, collwise_tree_at(topology, procs, root, rank, degree)};
    }
    return last->tree;
}

/* A message of one segment goes down the tree without lists of requests. */
enum { FEW_CHILDREN = 8 };

static int is_one_segment(size_t bytes, size_t segment_bytes) {
    return bytes > 0 && bytes <= COLLWISE_PIECE_BYTES && (segment_bytes == 0 || bytes <= segment_bytes);
}

void __wrap_collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes,
                                MPI_Comm comm);
void __real_collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes,
                                MPI_Comm comm);
void __wrap_collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes,
                                MPI_Comm comm) {
    MPI_Request sends[FEW_CHILDREN];
    if (!is_one_segment(bytes, segment_bytes) || tree->child_count > FEW_CHILDREN) {
        __real_collwise_tree_bcast(data, bytes, tree, segment_bytes, comm);
        return;
    }
    if (tree->parent >= 0) {
        PMPI_Recv(data, (int)bytes, MPI_BYTE, tree->parent, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
    }
    if (tree->child_count == 1) {
        PMPI_Send(data, (int)bytes, MPI_BYTE, collwise_tree_child(tree, 0), COLLWISE_TAG, comm);
        return;
    }
    for (int child = 0; child < tree->child_count; child++) {
        PMPI_Isend(data, (int)bytes, MPI_BYTE, collwise_tree_child(tree, child), COLLWISE_TAG, comm, &sends[child]);
    }
    if (tree->child_count > 0) {
        PMPI_Waitall(tree->child_count, sends, MPI_STATUSES_IGNORE);
    }
}

/* The same upwards, for a process without children and for a root with one. */
void __wrap_collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                                 const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm);
void __real_collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                                 const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm);
void __wrap_collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                                 const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm) {
    size_t bytes = elements * op->element_bytes;
    if (!is_one_segment(bytes, segment_bytes) || tree->root != root || tree->child_count > (tree->parent < 0 ? 1 : 0)) {
        __real_collwise_tree_reduce(data, result, elements, op, tree, root, segment_bytes, comm);
        return;
    }
    if (tree->parent >= 0) {
        PMPI_Send(data, (int)bytes, MPI_BYTE, tree->parent, COLLWISE_TAG, comm);
        return;
    }
    int child = collwise_tree_child(tree, 0);
    if (op->commutative) {
        PMPI_Recv(result, (int)bytes, MPI_BYTE, child, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
        collwise_combine(op, data, result, elements);
        return;
    }
    char *received = __wrap_collwise_scratch(bytes, comm);
    collwise_copy(result, data, bytes);
    PMPI_Recv(received, (int)bytes, MPI_BYTE, child, COLLWISE_TAG, comm, MPI_STATUS_IGNORE);
    collwise_combine_received(op, result, received, elements, child < root);
    __wrap_collwise_scratch_free(received);
}

/* --- Memory for short messages and lists -------------------------------------------------------------------------- */

static char *take_short(interpose_short_buffer *buffers, int count, size_t bytes) {
    for (int i = 0; i < count && bytes <= INTERPOSE_SHORT_BYTES; i++) {
        if (!buffers[i].is_used) {
            buffers[i].is_used = 1;
            return buffers[i].bytes;
        }
    }
    return NULL;
}

/* Returns 0 if the memory is none of the buffers. */
static int give_back(interpose_short_buffer *buffers, int count, const char *memory) {
    for (int i = 0; i < count; i++) {
        if (memory == buffers[i].bytes) {
            buffers[i].is_used = 0;
            return 1;
        }
    }
    return 0;
}

char *__real_collwise_scratch(size_t bytes, MPI_Comm comm);
char *__wrap_collwise_scratch(size_t bytes, MPI_Comm comm) {
    char *scratch = take_short(interpose_own_thread()->short_buffers, INTERPOSE_SHORT_BUFFERS, bytes);
    return scratch != NULL ? scratch : __real_collwise_scratch(bytes, comm);
}

void __real_collwise_scratch_free(char *scratch);
void __wrap_collwise_scratch_free(char *scratch) {
    if (scratch != NULL && !give_back(interpose_own_thread()->short_buffers, INTERPOSE_SHORT_BUFFERS, scratch)) {
        __real_collwise_scratch_free(scratch);
    }
}

size_t *__wrap_collwise_sizes(size_t count, MPI_Comm comm);
size_t *__real_collwise_sizes(size_t count, MPI_Comm comm);
size_t *__wrap_collwise_sizes(size_t count, MPI_Comm comm) {
    char *list = take_short(interpose_own_thread()->list_buffers, INTERPOSE_LIST_BUFFERS, count * sizeof(size_t));
    return list != NULL ? (size_t *)(void *)list : __real_collwise_sizes(count, comm);
}

void __wrap_collwise_sizes_free(size_t *sizes);
void __real_collwise_sizes_free(size_t *sizes);
void __wrap_collwise_sizes_free(size_t *sizes) {
    if (sizes != NULL &&
        !give_back(interpose_own_thread()->list_buffers, INTERPOSE_LIST_BUFFERS, (const char *)sizes)) {
        __real_collwise_sizes_free(sizes);
    }
}

#endif
