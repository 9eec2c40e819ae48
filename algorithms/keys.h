/* Keys of attributes of communicators (communicator.c). */
#ifndef COLLWISE_KEYS_H
#define COLLWISE_KEYS_H

#include <mpi.h>
#include <stdatomic.h>

/* The place of a key: 0 before its first use, then one more than the key. */
typedef atomic_int collwise_key_place;

/* The key at a place, made on first use; all processes and threads get the same one. */
int collwise_key(collwise_key_place *place, MPI_Comm_delete_attr_function *free_value);

#endif
