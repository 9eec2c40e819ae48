/* The communicators of a recorded program: the members of each, and their division by colour and key. */
#ifndef COLLWISE_COMMUNICATORS_H
#define COLLWISE_COMMUNICATORS_H

#include <stddef.h>

typedef struct communicators communicators;

/* Communicators have the numbers of MPI_Comm: 0 is MPI_COMM_NULL, 1 the world of all `procs` processes. Returns NULL if
 * memory runs out. */
communicators *recording_communicators_make(int procs);
void recording_communicators_free(communicators *of);

/* Makes a communicator of these processes, in the order of their ranks. Returns its number, 0 if memory runs out. */
int recording_communicators_add(communicators *to, int size, const int *processes);

/* The number of its members, 0 if there is no such communicator. */
int recording_communicators_size(const communicators *of, int number);
/* A member's rank in the world, and the rank of a world's process, -1 if it is no member. */
int recording_communicators_member(const communicators *of, int number, int rank);
int recording_communicators_rank(const communicators *of, int number, int process);

enum { COMMUNICATORS_UNKNOWN = -1 };

/* The member with that rank calls for a division, as MPI_Comm_split does; the processes with each colour but
 * `no_colour` become a communicator. Returns 0 if memory runs out. */
int recording_communicators_divide(communicators *of, int number, int rank, int colour, int no_colour, int key);
/* The communicator that the member got of its last call, 0 for `no_colour`; COMMUNICATORS_UNKNOWN as long as a member
 * has not called. May be asked again only while it is unknown. */
int recording_communicators_part(communicators *of, int number, int rank);

#endif
