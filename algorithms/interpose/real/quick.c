/* Functions that answer what algorithms ask of MPI in every call from what is known already. The linker puts them in
 * place of MPI's in libcollwise (--wrap): a short call takes less time than the questions would. */
#include "fast_path.h"

/* --- Named datatypes and operations, which are never freed -------------------------------------------------------- */

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
