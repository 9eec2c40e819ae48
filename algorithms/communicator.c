/* The private duplicate of a communicator, kept as an attribute, and what others keep with it; a process's rank and
 * place in a tree.
 *
 * The only static here holds the attributes' keys. They are written once and never change, so simulated processes may
 * share them, too: all of them use the same keys. */
#include "current.h"
#include "keys.h"
#include "tasks.h"

#include <stdlib.h>

enum { OF_WORLD, OF_OTHERS, KEPT, KEYS = KEPT + COLLWISE_KEPT_KINDS };

typedef struct {
    void *value;
    void (*release)(void *value);
} kept;

static int free_private(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    MPI_Comm *private = value;
    int status = MPI_Comm_free(private);
    free(private);
    return status;
}

static int free_kept(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    kept *one = value;
    if (one->release != NULL) {
        one->release(one->value);
    }
    free(one);
    return MPI_SUCCESS;
}

int collwise_key(collwise_key_place *place, MPI_Comm_delete_attr_function *free_value) {
    int known = atomic_load(place);
    if (known != 0) {
        return known - 1;
    }
    int made;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_value, &made, NULL);
    int expected = 0;
    if (atomic_compare_exchange_strong(place, &expected, made + 1)) {
        return made;
    }
    MPI_Comm_free_keyval(&made);
    return expected - 1;
}

static int attribute_key(int which) {
    static collwise_key_place keys[KEYS];
    return collwise_key(&keys[which], which < KEPT ? free_private : free_kept);
}

/* Simulated processes share one MPI_COMM_WORLD object with its attributes, but have their own objects of every other
 * communicator. The duplicate of MPI_COMM_WORLD is therefore an attribute of MPI_COMM_SELF, under a key of its own.
 * MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while communication is still possible. */
static MPI_Comm kept_private(MPI_Comm comm) {
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

MPI_Comm collwise_private(MPI_Comm comm) {
    const collwise_current *now = collwise_current_in(comm);
    return now != NULL && comm == now->comm ? now->private : kept_private(comm);
}

void collwise_keep(MPI_Comm private, collwise_kept_kind kind, void *value, void (*release)(void *)) {
    kept *one = collwise_allocate(sizeof *one, private);
    *one = (kept){value, release};
    MPI_Comm_set_attr(private, attribute_key(KEPT + (int)kind), one);
}

void *collwise_kept(MPI_Comm private, collwise_kept_kind kind) {
    kept *one;
    int found;
    MPI_Comm_get_attr(private, attribute_key(KEPT + (int)kind), &one, &found);
    return found ? one->value : NULL;
}

void collwise_keep_no_longer(MPI_Comm private, collwise_kept_kind kind) {
    MPI_Comm_delete_attr(private, attribute_key(KEPT + (int)kind));
}

const collwise_observer *collwise_observer_of(MPI_Comm comm) { return collwise_kept(comm, COLLWISE_KEPT_OBSERVER); }

int collwise_rank_in(MPI_Comm comm) {
    const collwise_current *now = collwise_current_in(comm);
    int rank;
    if (now != NULL) {
        return now->rank;
    }
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int collwise_size_of(MPI_Comm comm) {
    const collwise_current *now = collwise_current_in(comm);
    int procs;
    if (now != NULL) {
        return now->procs;
    }
    MPI_Comm_size(comm, &procs);
    return procs;
}

collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree) {
    return collwise_tree_at(topology, collwise_size_of(comm), root, collwise_rank_in(comm), degree);
}
