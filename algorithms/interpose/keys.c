/* Keys of attributes. */
#include "interpose.h"

int interpose_key(atomic_int *key, MPI_Comm_delete_attr_function *free_value) {
    int stored = atomic_load(key);
    if (stored != MPI_KEYVAL_INVALID) {
        return stored;
    }
    int made;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_value, &made, NULL);
    int expected = MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(key, &expected, made)) {
        return made;
    }
    PMPI_Comm_free_keyval(&made);
    return expected;
}
