/* What the algorithms' own files share: point-to-point messages of any size, and user buffers seen as bytes. */
#ifndef COLLWISE_INTERNAL_H
#define COLLWISE_INTERNAL_H

#include "collwise.h"
#include "topology/topology.h"

/* All traffic is on the private communicator, where MPI's message order is enough to keep calls apart. */
enum { COLLWISE_TAG = 1 };

/* MPI counts are ints: longer messages travel in pieces of this size. */
#define COLLWISE_PIECE_BYTES ((size_t)1 << 30)

void collwise_send(const char *data, size_t bytes, int destination, MPI_Comm comm);
void collwise_receive(char *data, size_t bytes, int source, MPI_Comm comm);

/* Send and receive at once with one partner; either size may differ. */
void collwise_exchange(const char *send, size_t send_bytes, char *receive, size_t receive_bytes, int partner,
                       MPI_Comm comm);

/* How many segments a message has (0 bytes have none), and how long segment `index` is. */
size_t collwise_segment_count(size_t bytes, size_t segment_bytes);
size_t collwise_segment_length(size_t bytes, size_t segment_bytes, size_t index);
/* The segment size in use: pieces bound it, and 0 means whole messages. */
size_t collwise_segment_bytes(size_t segment_bytes);

/* The paper's Algorithm 1: non-blocking sends of each segment to all children, blocking on each received segment. */
void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm);

/* The second phase of split-binary: pairs of the two subtrees exchange the halves of the message. */
void collwise_split_binary_exchange(char *data, size_t bytes, int root, MPI_Comm comm);

/* The tree of `comm` as the calling process sees it. */
collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout);

/* Memory, or the end of the program: there is no way to go on with half the processes. */
void *collwise_allocate(size_t bytes, MPI_Comm comm);

/* A user buffer as the bytes of its type signature. Contiguous data is used where it lies, other data in a copy. */
typedef struct {
    char *data;
    size_t bytes;
    char *copy; /* NULL when the data lies contiguous */
} collwise_bytes;

collwise_bytes collwise_bytes_of(const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_pack(collwise_bytes *view, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_unpack(const collwise_bytes *view, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_release(collwise_bytes *view);

#endif
