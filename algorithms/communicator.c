/* The private duplicate of a communicator, kept as an attribute.
 *
 * The one static here is the attributes' keys. They are written once and never change, which is also right where
 * simulated processes share them: keys are engine-wide handles there. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { OF_WORLD, OF_OTHERS, KEYS };

static int free_private(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm;
    (void)key;
    (void)extra;
    MPI_Comm *private = value;
    int status = MPI_Comm_free(private);
    free(private);
    return status;
}

static int attribute_key(int which) {
    static atomic_int keys[KEYS] = {MPI_KEYVAL_INVALID, MPI_KEYVAL_INVALID};
    int known = atomic_load(&keys[which]);
    if (known != MPI_KEYVAL_INVALID) {
        return known;
    }
    int made;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_private, &made, NULL);
    int expected = MPI_KEYVAL_INVALID;
    if (atomic_compare_exchange_strong(&keys[which], &expected, made)) {
        return made;
    }
    MPI_Comm_free_keyval(&made);
    return expected;
}

/* Simulated processes have one MPI_COMM_WORLD object between them, attributes and all, but each its own of every other
 * communicator. So what belongs to the world hangs on MPI_COMM_SELF, under a key of its own; MPI_Finalize deletes the
 * attributes of that one first, while messages still travel. */
MPI_Comm collwise_private(MPI_Comm comm) {
    int is_world = comm == MPI_COMM_WORLD;
    MPI_Comm holder = is_world ? MPI_COMM_SELF : comm;
    int key = attribute_key(is_world ? OF_WORLD : OF_OTHERS);
    MPI_Comm *private;
    int found;
    MPI_Comm_get_attr(holder, key, &private, &found);
    if (!found) {
        private = collwise_allocate(sizeof *private, comm);
        MPI_Comm_dup(comm, private);
        MPI_Comm_set_errhandler(*private, MPI_ERRORS_ARE_FATAL);
        MPI_Comm_set_attr(holder, key, private);
    }
    return *private;
}
