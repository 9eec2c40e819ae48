/* The collectives of collwise, for C programs: pick an algorithm by name, run it in place of the MPI call.
 *
 *     const collwise_algorithm *binary = collwise_find("bcast", "binary");
 *     collwise_bcast(binary, buffer, count, type, root, comm, (collwise_parameters){.segment_bytes = 8192});
 *
 * Arguments mean what they mean in MPI_Bcast and MPI_Gather, MPI_IN_PLACE included; every process of an
 * intracommunicator calls with the same algorithm and parameters. Messages travel on a private duplicate of the
 * communicator, whose errors are fatal. All processes must share one data representation. */
#ifndef COLLWISE_H
#define COLLWISE_H

#include <mpi.h>
#include <stddef.h>

typedef struct {
    size_t segment_bytes; /* 0: the message is not segmented */
    int fanout;           /* 0: the algorithm's default */
} collwise_parameters;

/* The two forms an algorithm has. `comm` is the private communicator. Broadcast: `data` holds `bytes` bytes.
 * Gather: `mine` holds `block_bytes` bytes; `all`, significant at the root, has one block a rank, and the root's own
 * block is already in place. */
typedef void collwise_bcast_function(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with);
typedef void collwise_gather_function(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                      collwise_parameters with);

typedef struct {
    const char *collective;
    const char *name;
    int default_fanout;
    collwise_bcast_function *bcast;
    collwise_gather_function *gather;
} collwise_algorithm;

/* Every algorithm of the catalogue, closed by an entry whose collective is NULL. Made from catalogue.toml. */
extern const collwise_algorithm collwise_registry[];

/* The entry, or NULL if the catalogue has no such algorithm. */
const collwise_algorithm *collwise_find(const char *collective, const char *name);

void collwise_bcast(const collwise_algorithm *algorithm, void *buffer, int count, MPI_Datatype type, int root,
                    MPI_Comm comm, collwise_parameters with);

void collwise_gather(const collwise_algorithm *algorithm, const void *send, int send_count, MPI_Datatype send_type,
                     void *receive, int receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm,
                     collwise_parameters with);

/* A dissemination barrier: ceil(log2 P) rounds, against the linear ones that some engines have. */
void collwise_barrier(MPI_Comm comm);

/* The private duplicate of `comm`, made on first use (a collective call then) and freed with it. */
MPI_Comm collwise_private(MPI_Comm comm);

#endif
