/* Functions that answer what algorithms ask of MPI in every call from what is known already. The linker puts them in
 * place of MPI's in libcollwise (--wrap): a short call takes less time than the questions would. */
#include "fast_path.h"

#ifndef SMPI_SHARED_MALLOC

#include <limits.h>
#include <stddef.h>

static int is_current(MPI_Comm comm) {
    const interpose_current_call *now = interpose_current;
    return now != NULL && (comm == now->private || comm == now->comm);
}

MPI_Comm __wrap_collwise_private(MPI_Comm comm);
MPI_Comm __real_collwise_private(MPI_Comm comm);
MPI_Comm __wrap_collwise_private(MPI_Comm comm) {
    return interpose_current != NULL && comm == interpose_current->comm ? interpose_current->private
                                                                        : __real_collwise_private(comm);
}

int __wrap_MPI_Comm_rank(MPI_Comm comm, int *rank);
int __wrap_MPI_Comm_rank(MPI_Comm comm, int *rank) {
    if (is_current(comm)) {
        *rank = interpose_current->rank;
        return MPI_SUCCESS;
    }
    return PMPI_Comm_rank(comm, rank);
}

int __wrap_MPI_Comm_size(MPI_Comm comm, int *procs);
int __wrap_MPI_Comm_size(MPI_Comm comm, int *procs) {
    if (is_current(comm)) {
        *procs = interpose_current->procs;
        return MPI_SUCCESS;
    }
    return PMPI_Comm_size(comm, procs);
}

/* --- Named datatypes and operations, which are never freed ---------------------------------------------------------
 */

static int is_cached(MPI_Datatype type) { return interpose_type_cache.is_set && interpose_type_cache.type == type; }

int __wrap_MPI_Type_size(MPI_Datatype type, int *bytes);
int __wrap_MPI_Type_size(MPI_Datatype type, int *bytes) {
    if (is_cached(type) && interpose_type_cache.bytes <= INT_MAX) {
        *bytes = (int)interpose_type_cache.bytes;
        return MPI_SUCCESS;
    }
    return PMPI_Type_size(type, bytes);
}

int __wrap_MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent);
int __wrap_MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *low, MPI_Aint *extent) {
    if (is_cached(type)) {
        *low = interpose_type_cache.low;
        *extent = interpose_type_cache.extent;
        return MPI_SUCCESS;
    }
    return PMPI_Type_get_extent(type, low, extent);
}

int __wrap_MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner);
int __wrap_MPI_Type_get_envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner) {
    if (is_cached(type)) {
        *integers = *addresses = *types = 0;
        *combiner = MPI_COMBINER_NAMED;
        return MPI_SUCCESS;
    }
    return PMPI_Type_get_envelope(type, integers, addresses, types, combiner);
}

int __wrap_collwise_is_contiguous(MPI_Datatype type);
int __real_collwise_is_contiguous(MPI_Datatype type);
int __wrap_collwise_is_contiguous(MPI_Datatype type) {
    return is_cached(type) ? interpose_type_cache.low == 0 && interpose_type_cache.extent == interpose_type_cache.bytes
                           : __real_collwise_is_contiguous(type);
}

int __wrap_MPI_Op_commutative(MPI_Op op, int *commutes);
int __wrap_MPI_Op_commutative(MPI_Op op, int *commutes) {
    if (interpose_is_predefined(op)) {
        *commutes = 1;
        return MPI_SUCCESS;
    }
    return PMPI_Op_commutative(op, commutes);
}

/* --- Scratch memory for short messages ---------------------------------------------------------------------------- */

enum { SHORT_BYTES = 512, SHORT_BUFFERS = 2 };

typedef struct {
    _Alignas(max_align_t) char bytes[SHORT_BYTES];
    int is_used;
} short_buffer;

static _Thread_local __attribute__((tls_model("initial-exec"))) short_buffer short_buffers[SHORT_BUFFERS];

char *__wrap_collwise_scratch(size_t bytes, MPI_Comm comm);
char *__real_collwise_scratch(size_t bytes, MPI_Comm comm);
char *__wrap_collwise_scratch(size_t bytes, MPI_Comm comm) {
    for (int i = 0; i < SHORT_BUFFERS && bytes <= SHORT_BYTES; i++) {
        if (!short_buffers[i].is_used) {
            short_buffers[i].is_used = 1;
            return short_buffers[i].bytes;
        }
    }
    return __real_collwise_scratch(bytes, comm);
}

void __wrap_collwise_scratch_free(char *scratch);
void __real_collwise_scratch_free(char *scratch);
void __wrap_collwise_scratch_free(char *scratch) {
    for (int i = 0; i < SHORT_BUFFERS; i++) {
        if (scratch == short_buffers[i].bytes) {
            short_buffers[i].is_used = 0;
            return;
        }
    }
    __real_collwise_scratch_free(scratch);
}

#endif
