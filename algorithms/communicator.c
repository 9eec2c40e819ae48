/* The private duplicate of a communicator, kept on it as an attribute.
 *
 * The one static here is the attribute's key. It is written once and never changes, which is also right where
 * simulated processes share it: the key is an engine-wide handle there, and the duplicates themselves hang on
 * communicators. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

static int free_private(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    MPI_Comm *private = value;
    int status = MPI_Comm_free(private);
    free(private);
    return status;
}

static int attribute_key(void) {
    static atomic_int key = MPI_KEYVAL_INVALID;
    int known = atomic_load(&key);
    if (known != MPI_KEYVAL_INVALID) {
        return known;
    }
    int made;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_private, &made, NULL);
    int expected = MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(&key, &expected, made)) {
        return made;
    }
    MPI_Comm_free_keyval(&made);
    return expected;
}

#ifdef SMPI_SHARED_MALLOC

/* All simulated processes may hold one object as `comm`, as they do with MPI_COMM_WORLD. Then the duplicate of the
 * first one is for all, and none keeps it before all have come to see that there is none yet. */
static MPI_Comm *keep(MPI_Comm comm, int key, MPI_Comm *private) {
    MPI_Comm *earlier;
    int found;
    PMPI_Barrier(*private);
    MPI_Comm_get_attr(comm, key, &earlier, &found);
    if (found) {
        MPI_Comm_free(private);
        free(private);
        return earlier;
    }
    MPI_Comm_set_attr(comm, key, private);
    return private;
}

#else

static MPI_Comm *keep(MPI_Comm comm, int key, MPI_Comm *private) {
    MPI_Comm_set_attr(comm, key, private);
    return private;
}

#endif

MPI_Comm collwise_private(MPI_Comm comm) {
    MPI_Comm *private;
    int found;
    int key = attribute_key();
    MPI_Comm_get_attr(comm, key, &private, &found);
    if (!found) {
        private = collwise_allocate(sizeof *private, comm);
        MPI_Comm_dup(comm, private);
        MPI_Comm_set_errhandler(*private, MPI_ERRORS_ARE_FATAL);
        private = keep(comm, key, private);
    }
    return *private;
}
