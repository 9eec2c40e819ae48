/* What the algorithms' own files share: point-to-point messages of any size, segments, scratch memory, the local
 * reduction, and user buffers seen as bytes. */
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

/* Sends to one process and receives from another (or the same) at once; either size may be 0. */
void collwise_sendrecv(const char *send, size_t send_bytes, int destination, char *receive, size_t receive_bytes,
                       int source, MPI_Comm comm);

/* A barrier's messages say nothing, and are empty. In simulation they carry a byte: empty ones are never charged the
 * processor's time in a send or receive, and a linear barrier would take no longer for more processes. */
#ifdef SMPI_SHARED_MALLOC
enum { COLLWISE_TOKEN_BYTES = 1 };
#else
enum { COLLWISE_TOKEN_BYTES = 0 };
#endif
void collwise_signal(int destination, MPI_Comm comm);
void collwise_await(int source, MPI_Comm comm);
void collwise_signal_and_await(int destination, int source, MPI_Comm comm);

/* Messages under way. Start any number, then wait for all: */
typedef struct {
    MPI_Request *list;
    int count, room;
    MPI_Comm comm;
} collwise_requests;

/* None yet; `room` is a guess at how many there will be. */
collwise_requests collwise_requests_make(int room, MPI_Comm comm);
typedef void collwise_start_function(collwise_requests *requests, const char *data, size_t bytes, int destination);
collwise_start_function collwise_start_send;
/* One that is not over before its receive has begun. */
collwise_start_function collwise_start_synchronous_send;
void collwise_start_receive(collwise_requests *requests, char *data, size_t bytes, int source);
/* Waits for all of them; the list is empty then and can be filled anew. */
void collwise_wait(collwise_requests *requests);
void collwise_requests_free(collwise_requests *requests);

static inline size_t collwise_least(size_t a, size_t b) { return a < b ? a : b; }

/* How many segments a message has (0 bytes have none), and how long segment `index` is. */
size_t collwise_segment_count(size_t bytes, size_t segment_bytes);
size_t collwise_segment_length(size_t bytes, size_t segment_bytes, size_t index);
/* The segment size in use: pieces bound it, and 0 means whole messages. */
size_t collwise_segment_bytes(size_t segment_bytes);

/* Consecutive elements, or bytes, of a message. */
typedef struct {
    size_t first, count;
} collwise_part;

/* Part `index` of a message cut into parts of one size, the first ones one longer. */
collwise_part collwise_equal_part(size_t size, size_t parts, size_t index);
/* The least number of such parts, of whole bytes, that all stay below a bound of at least 2. */
size_t collwise_parts_below(size_t bytes, size_t bound);

/* The paper's Algorithm 1: non-blocking sends of each segment to all children, blocking on each received segment. */
void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm);

/* The second phase of split-binary: pairs of the two subtrees exchange the halves of the message. */
void collwise_split_binary_exchange(char *data, size_t bytes, int root, MPI_Comm comm);

/* Where block `index` begins of a message cut into one block a process, all of one size, the first ones one longer.
 * Sizes are bytes or elements. */
size_t collwise_block_start(size_t size, size_t procs, size_t index);

/* The first phase of the scatter-allgather broadcasts: virtual rank v gets block v, and in passing those of its subtree
 * in the in-order binomial tree, each at its place in the message. */
void collwise_scatter_message(char *data, size_t bytes, int root, MPI_Comm comm);

/* The barrier behind collwise_barrier(). */
collwise_barrier_function collwise_barrier_bruck;

/* Reduce-scatter by vector halving, between the furthest processes first, or the nearest, which keeps rank order. */
void collwise_reduce_scatter_by_halving(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                        int nearest_first, MPI_Comm comm);

/* Scans, or exclusive ones. */
void collwise_pipelined_scan(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             int exclusive, MPI_Comm comm);
void collwise_doubling_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm);
void collwise_binomial_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm);

/* The calling process's rank, and P. */
int collwise_rank_in(MPI_Comm comm);
int collwise_size_of(MPI_Comm comm);

/* The tree of `comm` as the calling process sees it. */
collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int fanout);

/* Equal blocks run through the algorithms for blocks of any size: their P + 1 offsets, freed with free(). */
size_t *collwise_equal_offsets(size_t block_bytes, MPI_Comm comm);
collwise_allgatherv_function collwise_allgatherv_bruck, collwise_allgatherv_ring, collwise_allgatherv_neighbor_exchange;
collwise_alltoallv_function collwise_alltoallv_linear, collwise_alltoallv_pairwise;

/* A linear gather, or scatter, of one part of each block, which lies at its place in the block. */
void collwise_gather_part(const char *mine, char *all, size_t block_bytes, collwise_part part, int root, MPI_Comm comm);
void collwise_scatter_part(const char *all, char *mine, size_t block_bytes, collwise_part part, int root,
                           MPI_Comm comm);
collwise_scatter_function collwise_scatter_linear;

/* The two phases of the linear allgathers. */
collwise_gather_function collwise_gather_linear;
collwise_gatherv_function collwise_gatherv_linear;
collwise_bcast_function collwise_bcast_binomial;

/* Memory for what algorithms keep in their books: lists, sizes, requests. No memory ends the program: there is no way
 * to go on with half the processes. Freed with free(). */
void *collwise_allocate(size_t bytes, MPI_Comm comm);

/* Scratch memory for users' data, and copies between such. In sweeps, where data has no values, all of it may be the
 * same memory, and a copy does nothing. */
char *collwise_scratch(size_t bytes, MPI_Comm comm);
void collwise_scratch_free(char *scratch);
void collwise_copy(char *to, const char *from, size_t bytes);

/* --- Reductions (operation.c): the one place that computes ------------------------------------------------------- */

collwise_operation collwise_operation_of(MPI_Op op, MPI_Datatype type, MPI_Comm comm);

/* right = left op right, elementwise, for `elements` packed elements. The order counts where op does not commute:
 * MPI wants the contributions of lower ranks on the left. */
void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements);

/* left = left op right; what `right` ends as is undefined. */
void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements);

/* The segment size in whole elements, at least one; all of `elements` for 0. */
size_t collwise_segment_elements(const collwise_operation *op, size_t elements, size_t segment_bytes);

/* --- Reductions and allreductions -------------------------------------------------------------------------------- */

/* Reduces up a tree; the tree's root passes the result on where it is not `root`. */
void collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                          const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm);

/* An allreduce of two parts, neither of them segmented. */
void collwise_reduce_then_bcast(char *data, size_t elements, const collwise_operation *op,
                                collwise_reduce_function *reduce, collwise_bcast_function *bcast, MPI_Comm comm);
collwise_reduce_function collwise_reduce_linear, collwise_reduce_binomial;
collwise_bcast_function collwise_bcast_linear;

/* Around a ring and around again; 0: blocks are not segmented. */
void collwise_ring_allreduce(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             MPI_Comm comm);

/* The core (core.c): 2^steps of the processes, numbered in rank order. The first 2 `pairs` ranks are pairs, of which
 * one is in the core and acts for both. */
typedef struct {
    int steps, pairs;
    int kept, kept_index; /* this rank is in the core, under this number */
    int rank, index;      /* the calling process: its number in the core, -1 outside */
    int partner;          /* the other of its pair, -1 if there is none */
    MPI_Comm comm;
} collwise_core;

collwise_core collwise_core_of(int kept, MPI_Comm comm);
int collwise_core_rank(const collwise_core *core, int index);

/* Those outside the core get `data` from their partners. */
void collwise_core_hand_out(char *data, size_t bytes, const collwise_core *core);

/* What is left to number `index` of the core after this many halvings. */
collwise_part collwise_part_of(size_t elements, int index, int steps);

/* Recursive halving, rank order kept; each process of the core ends with the sum of its part after all steps. What else
 * is in `data` is undefined then. */
void collwise_core_reduce_scatter(char *data, size_t elements, const collwise_operation *op, const collwise_core *core);

/* --- User buffers as bytes (bytes.c) ----------------------------------------------------------------------------- */

/* The bytes of a user buffer's type signature. Contiguous data is used where it lies, other data in a copy. */
typedef struct {
    char *data;
    size_t bytes;
    char *copy; /* NULL when the data lies contiguous */
} collwise_bytes;

collwise_bytes collwise_bytes_of(const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_pack(collwise_bytes *view, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_unpack(const collwise_bytes *view, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_bytes_release(collwise_bytes *view);

/* --- Layout and packed form (layout.c) --------------------------------------------------------------------------- */

/* Packs `count` elements, or unpacks them; contiguous data is copied at once. */
void collwise_pack(char *packed, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_unpack(const char *packed, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);

/* Whether the packed form of elements of `type` is also their own layout. */
int collwise_is_contiguous(MPI_Datatype type);

/* Where the data of an element begins and ends, in bytes from its address. */
void collwise_true_bounds(MPI_Datatype type, MPI_Aint *low, MPI_Aint *high, MPI_Comm comm);

/* --- One block a process (blocks.c) ------------------------------------------------------------------------------ */

/* Blocks in a user buffer, one a process: all of `count` elements, or of counts[i] from displacements[i] on. */
typedef struct {
    char *buffer;
    int count;
    const int *counts, *displacements;
    MPI_Datatype type;
    int procs;
    MPI_Comm comm;
    size_t element_bytes;
    MPI_Aint extent;
    char *data;      /* the packed blocks in rank order: in the user's buffer where they lie so, else in a copy */
    size_t *offsets; /* P + 1 of them, in bytes */
    char *copy;
} collwise_blocks;

collwise_blocks collwise_blocks_of(const void *buffer, int count, const int *counts, const int *displacements,
                                   MPI_Datatype type, MPI_Comm comm);
/* Packs, or unpacks, block `rank`, or all blocks. Nothing to do where the blocks lie packed. */
void collwise_blocks_pack(const collwise_blocks *blocks, int rank);
void collwise_blocks_pack_all(const collwise_blocks *blocks);
void collwise_blocks_unpack_all(const collwise_blocks *blocks);
void collwise_blocks_release(collwise_blocks *blocks);

/* The largest of `count` sizes; 0 of none. */
size_t collwise_largest(const size_t *sizes, int count);

#endif
