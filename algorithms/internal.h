/* Functions that the algorithms share: point-to-point messages of any size, parts and segments of messages, phases of
 * algorithms, scratch memory, the local reduction, the fold to a power of two, and user buffers as bytes. */
#ifndef COLLWISE_INTERNAL_H
#define COLLWISE_INTERNAL_H

#include "collwise.h"
#include "topology/topology.h"
#include "world.h"

/* All messages are on the private communicator, where MPI's message order keeps those of different calls apart. */
enum { COLLWISE_TAG = 1, COLLWISE_UNUSED_TAG = 2 };

/* MPI counts are ints: longer messages are sent in pieces of this size. */
#define COLLWISE_PIECE_BYTES ((size_t)1 << 30)

void collwise_send(const char *data, size_t bytes, int destination, MPI_Comm comm);
void collwise_receive(char *data, size_t bytes, int source, MPI_Comm comm);

/* Sends to one process and receives from another (or the same) at once; either size may be 0. */
void collwise_sendrecv(const char *send, size_t send_bytes, int destination, char *receive, size_t receive_bytes,
                       int source, MPI_Comm comm);

/* The messages of barriers, of COLLWISE_TOKEN_BYTES bytes. */
void collwise_signal(int destination, MPI_Comm comm);
void collwise_await(int source, MPI_Comm comm);
void collwise_signal_and_await(int destination, int source, MPI_Comm comm);

/* Sends and receives under way. Start any number, then wait for all. Few of them need no memory of their own: */
enum { COLLWISE_FEW_REQUESTS = 4 };
typedef struct {
    MPI_Request few[COLLWISE_FEW_REQUESTS];
    MPI_Request *more; /* all of them, where there is room for more than few; else NULL */
    int count, room;
    MPI_Comm comm;
} collwise_requests;

/* An empty list; `room` is how many requests are expected. */
collwise_requests collwise_requests_make(int room, MPI_Comm comm);
/* The requests, valid until another one is started or the struct is copied. */
static inline MPI_Request *collwise_request_list(collwise_requests *requests) {
    return requests->more != NULL ? requests->more : requests->few;
}
/* The place of one more request. */
MPI_Request *collwise_next_request(collwise_requests *requests);
typedef void collwise_start_function(collwise_requests *requests, const char *data, size_t bytes, int destination);
collwise_start_function collwise_start_send;
/* A send that does not complete before its receive has started. */
collwise_start_function collwise_start_synchronous_send;
void collwise_start_receive(collwise_requests *requests, char *data, size_t bytes, int source);
/* Waits for all of them; the list is empty then and can be used again. */
void collwise_wait(collwise_requests *requests);
void collwise_requests_free(collwise_requests *requests);

/* --- Parts of a message (parts.c) -------------------------------------------------------------------------------- */

static inline size_t collwise_min(size_t a, size_t b) { return a < b ? a : b; }

/* Consecutive bytes, or elements, of a message. */
typedef struct {
    size_t first, count;
} collwise_part;

static inline collwise_part collwise_whole(size_t size) { return (collwise_part){.first = 0, .count = size}; }

/* Iterates over the segments of a message or of a part of one. All but the last have the same size:
 *     for (collwise_segment segment = collwise_byte_segments(collwise_whole(bytes), segment_bytes); segment.count > 0;
 *          collwise_next_segment(&segment)) */
typedef struct {
    size_t first, count; /* the current segment; after the last one `count` is 0 */
    size_t size, end;    /* of all segments but the last; of the message */
} collwise_segment;

/* Segments of `size` bytes or elements. */
collwise_segment collwise_segments_of(collwise_part message, size_t size);

/* The segments that an algorithm is asked for; 0 means an unsegmented message. Segments in bytes are cut where a
 * message would be cut into pieces anyway; segments in elements have at least one element. */
collwise_segment collwise_byte_segments(collwise_part message, size_t segment_bytes);
collwise_segment collwise_element_segments(collwise_part message, const collwise_operation *op, size_t segment_bytes);
void collwise_next_segment(collwise_segment *segment);
/* The number of segments from the current one on. */
size_t collwise_segments_left(const collwise_segment *segment);

/* True if the receive of a segment is posted before it is needed (posting.c). */
int collwise_posts_ahead(void);

/* The segments that come from one process. The receive of the next one is posted as soon as one has arrived, before
 * that one is sent on or combined, or when it is needed; never are two under way, since they would compete for a link.
 */
typedef struct {
    char *data;
    size_t unit_bytes; /* of what segments count */
    int source;
    collwise_segment next; /* the next segment to be posted */
    collwise_requests receive;
} collwise_incoming;

/* The segments from `first` on, which arrive in their places of `data`; none if `source` is negative. */
collwise_incoming collwise_incoming_make(char *data, size_t unit_bytes, collwise_segment first, int source,
                                         MPI_Comm comm);
/* Waits for the next segment. */
void collwise_incoming_wait(collwise_incoming *incoming);
void collwise_incoming_free(collwise_incoming *incoming);

/* Part `index` of a message cut into parts of equal size, the first ones longer by one; and parts `first` to `end` - 1
 * together. */
collwise_part collwise_equal_part(size_t size, size_t parts, size_t index);
collwise_part collwise_equal_parts(size_t size, size_t parts, size_t first, size_t end);
/* The smallest number of equal parts, in whole bytes, that all stay below a bound of at least 2. */
size_t collwise_parts_below(size_t bytes, size_t bound);

/* The largest of `count` sizes; 0 of none. */
size_t collwise_largest(const size_t *sizes, int count);

/* The P + 1 offsets of blocks of equal size, for the algorithms that take blocks of any size; freed with
 * collwise_sizes_free(). */
size_t *collwise_equal_offsets(size_t block_bytes, MPI_Comm comm);

/* --- Phases that several algorithms share ------------------------------------------------------------------------ */

/* Algorithm 1 of Nuriyev & Lastovetsky 2021: receives each segment from the parent, sends it to all children with
 * non-blocking sends, and waits for these. */
void collwise_tree_bcast(char *data, size_t bytes, const collwise_tree *tree, size_t segment_bytes, MPI_Comm comm);

/* The second phase of split-binary: pairs of processes, one of each subtree, exchange the halves of the message. */
void collwise_split_binary_exchange(char *data, size_t bytes, int root, MPI_Comm comm);

/* The first phase of the scatter-allgather broadcasts: of the message's P equal parts, virtual rank v ends with part v
 * in its place, and with those of its subtree in the in-order binomial tree. */
void collwise_scatter_message(char *data, size_t bytes, int root, MPI_Comm comm);

/* The barrier behind collwise_barrier(). */
collwise_barrier_function collwise_barrier_bruck;

/* Reduce-scatter by vector halving between the furthest or the nearest processes first. The latter keeps rank order
 * and so suits operations that do not commute. */
void collwise_reduce_scatter_by_halving(char *data, const size_t *offsets, char *mine, const collwise_operation *op,
                                        int nearest_first, MPI_Comm comm);

/* The scans, which are exclusive scans if `exclusive` is set. */
void collwise_pipelined_scan(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             int exclusive, MPI_Comm comm);
void collwise_doubling_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm);
void collwise_binomial_scan(char *data, size_t elements, const collwise_operation *op, int exclusive, MPI_Comm comm);

/* --- The calling process (communicator.c) ------------------------------------------------------------------------ */

/* Its rank, and P. */
int collwise_rank_in(MPI_Comm comm);
int collwise_size_of(MPI_Comm comm);

/* The answers of MPI for a communicator and its private one, which libcollwise knows before a call (current.h). */
typedef struct {
    MPI_Comm comm, private;
    int rank, procs;
} collwise_current;

/* Values that are kept with a private communicator until it is freed, and released by their owners; NULL: none. */
typedef enum {
    COLLWISE_KEPT_HIERARCHY,
    COLLWISE_KEPT_OBSERVER,
    COLLWISE_KEPT_BUFFERS,
    COLLWISE_KEPT_KINDS
} collwise_kept_kind;
void collwise_keep(MPI_Comm private, collwise_kept_kind kind, void *value, void (*release)(void *));
void *collwise_kept(MPI_Comm private, collwise_kept_kind kind);
void collwise_keep_no_longer(MPI_Comm private, collwise_kept_kind kind);

/* Its place in the tree of all processes. */
collwise_tree collwise_tree_of(collwise_topology topology, int root, MPI_Comm comm, int degree);

/* The algorithms for blocks of any size serve blocks of equal size, too. */
collwise_allgatherv_function collwise_allgatherv_bruck, collwise_allgatherv_ring, collwise_allgatherv_neighbor_exchange;
collwise_alltoallv_function collwise_alltoallv_linear, collwise_alltoallv_pairwise;

/* A linear gather, or scatter, of the same part of every block. */
void collwise_gather_part(const char *mine, char *all, size_t block_bytes, collwise_part part, int root, MPI_Comm comm);
void collwise_scatter_part(const char *all, char *mine, size_t block_bytes, collwise_part part, int root,
                           MPI_Comm comm);
collwise_scatter_function collwise_scatter_linear;

/* The two phases of the linear allgathers. */
collwise_gather_function collwise_gather_linear;
collwise_gatherv_function collwise_gatherv_linear;
collwise_bcast_function collwise_bcast_binomial;

/* --- Memory (memory.c) ------------------------------------------------------------------------------------------- */

/* Memory for the algorithms' own data: lists, sizes, requests. Aborts the program if there is none, since the other
 * processes could not continue without this one. Freed with free(). */
void *collwise_allocate(size_t bytes, MPI_Comm comm);

/* A list of sizes or offsets that is freed in the same call of a collective. */
size_t *collwise_sizes(size_t count, MPI_Comm comm);
void collwise_sizes_free(size_t *sizes);

/* Scratch memory for users' data, and copies of users' data. In sweeps, where data has no values, all scratch memory
 * may be the same memory, and a copy moves nothing. In simulation a byte of a copy takes the time of the host's
 * property collwise/copy-seconds-per-byte, and one of scratch memory from collwise/kept-memory-bytes on
 * collwise/allocate-seconds-per-byte. */
char *collwise_scratch(size_t bytes, MPI_Comm comm);
void collwise_scratch_free(char *scratch);
void collwise_copy(char *to, const char *from, size_t bytes);

/* --- The local part of reductions (operation.c) ------------------------------------------------------------------ */

collwise_operation collwise_operation_of(MPI_Op op, MPI_Datatype type, MPI_Comm comm);

/* right = left op right where data has values; without the time that it takes. */
void collwise_compute(const collwise_operation *op, const char *left, char *right, size_t elements);

/* right = left op right, elementwise, for `elements` packed elements. Unless op commutes, MPI requires the
 * contributions of lower ranks on the left. */
void collwise_combine(const collwise_operation *op, const char *left, char *right, size_t elements);

/* left = left op right; `right` is undefined afterwards. */
void collwise_combine_left(const collwise_operation *op, char *left, char *right, size_t elements);

/* Adds a received contribution to `data`: on the left if it is that of lower ranks, else on the right, and `received`
 * is undefined afterwards. */
void collwise_combine_received(const collwise_operation *op, char *data, char *received, size_t elements,
                               int sender_is_lower);

/* --- Reductions and allreductions -------------------------------------------------------------------------------- */

/* Reduces up a tree. If the tree's root is not `root`, it sends the result there in the end. */
void collwise_tree_reduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                          const collwise_tree *tree, int root, size_t segment_bytes, MPI_Comm comm);

/* The segments that a tree's children send to a process: the first ones of all, then the second ones, and so on. `sum`
 * is the process's own contribution to a segment first; that of no elements changes nothing. */
typedef struct {
    const collwise_tree *tree;
    int rank;
    size_t element_bytes;
    collwise_segment next_segment; /* of the next receive to be started */
    int next_child;
    int current; /* which of the two buffers the receive started last uses */
    char *buffers[2];
    collwise_requests requests[2];
} collwise_contributions;

collwise_contributions collwise_contributions_make(const collwise_tree *tree, collwise_segment first,
                                                   const collwise_operation *op, MPI_Comm comm);
void collwise_contributions_combine(collwise_contributions *in, char *sum, size_t elements,
                                    const collwise_operation *op);
void collwise_contributions_free(collwise_contributions *in);

/* An unsegmented reduction to process 0, then an unsegmented broadcast. */
void collwise_reduce_then_bcast(char *data, size_t elements, const collwise_operation *op,
                                collwise_reduce_function *reduce, collwise_bcast_function *bcast, MPI_Comm comm);
collwise_reduce_function collwise_reduce_linear, collwise_reduce_binomial;
collwise_bcast_function collwise_bcast_linear;
collwise_allreduce_function collwise_allreduce_recursive_doubling;

/* A reduce-scatter and an allgather around a ring; the reduce-scatter in segments unless their size is 0. */
void collwise_ring_allreduce(char *data, size_t elements, const collwise_operation *op, size_t segment_bytes,
                             MPI_Comm comm);

/* --- Levels: within nodes, and between them (nodes.c, placement.c, levels.c) -------------------------------------- */

/* The processes of a communicator by node. Nodes have numbers in the order of their lowest ranks, and the processes of
 * a node have places in the order of their ranks. */
typedef struct {
    int nodes;
    int largest;  /* the number of processes on the largest node */
    int in_order; /* whether the ranks of every node are consecutive */
    int *node_of, *place_of;
    int *first, *ranks; /* those of node i are `ranks` from first[i] to first[i + 1] - 1 */
    int memory[];
} collwise_nodes;

/* Ranks with equal labels share a node. Freed with free(). */
collwise_nodes *collwise_nodes_make(const int *labels, int procs, MPI_Comm comm);
int collwise_node_size(const collwise_nodes *nodes, int node);

/* The leaders of all nodes; MPI_COMM_NULL for the other processes. */
typedef struct {
    int are_known;
    MPI_Comm comm;
} collwise_leaders;

/* The hierarchy of a private communicator: its nodes, and the communicators and windows made of it so far. That of a
 * node has sockets where this one has nodes. */
typedef struct collwise_hierarchy {
    collwise_nodes *nodes;
    int is_placed; /* several of the nodes may be one machine, */
    int socket;    /* and the process is on the socket with that number */
    MPI_Comm node;
    struct collwise_hierarchy *sockets;                     /* of the node; NULL before the first use */
    collwise_nodes *sockets_of_all;                         /* NULL before the first use */
    struct collwise_window *windows[COLLWISE_WITHIN_FORMS]; /* of the node; NULL where it has one process */
    void (*free_window)(struct collwise_window *window);
    collwise_leaders leaders[]; /* for each place of a root */
} collwise_hierarchy;

collwise_hierarchy *collwise_hierarchy_make(collwise_nodes *nodes, MPI_Comm comm);
/* Without its nodes. */
void collwise_hierarchy_free(collwise_hierarchy *made);
/* The hierarchy of a private communicator, made on first use (placement.c). */
collwise_hierarchy *collwise_hierarchy_of(MPI_Comm comm);
/* The processes of the own node by socket, and all processes; for the latter, `sockets` is known (placement.c). */
collwise_nodes *collwise_sockets_on_node(const collwise_hierarchy *of);
collwise_nodes *collwise_sockets_on_nodes(const collwise_hierarchy *of, MPI_Comm comm);
/* The number of the calling process's socket; the same for all of a node that are not bound to one. The process has
 * that place among `on_node` on its node (sockets.c). */
int collwise_own_socket(int place, int on_node);

/* The levels of a collective: the leader of the root's node is the root. */
typedef struct {
    const collwise_nodes *nodes;
    MPI_Comm node, between; /* of the own node's processes, and of the leaders, ranked by place and by node */
    int own_node;
    int leader, is_leader; /* its rank in `node`, and whether it is the calling process */
    int top;               /* the root's node */
} collwise_levels;

collwise_levels collwise_levels_of(int root, MPI_Comm comm);
/* The levels within the own node, between and within its sockets, of a collective whose root is the node's leader. */
collwise_levels collwise_socket_levels_of(int root, MPI_Comm comm);
/* All processes by socket, for those who know these levels: sockets here are what nodes are elsewhere. */
const collwise_nodes *collwise_sockets_of_all(MPI_Comm comm);
/* The place of a node's leader: that of the root in its own node, where there are so many processes. */
int collwise_leader_place(const collwise_nodes *nodes, int node, int root);

collwise_gather_function collwise_gather_binomial;
collwise_scatter_function collwise_scatter_binomial;
collwise_scatterv_function collwise_scatterv_linear;

/* True if all nodes have equally many processes. */
int collwise_are_equal(const collwise_nodes *nodes);
/* The offsets of the nodes' blocks, one block a process, in the order of nodes; one more for the end. Freed with
 * free(). */
size_t *collwise_node_offsets(const collwise_nodes *nodes, size_t block_bytes, MPI_Comm comm);
/* One block a process, from the order of ranks to that of nodes and places, and back. */
void collwise_put_by_node(char *by_node, const char *by_rank, size_t block_bytes, const collwise_nodes *nodes);
void collwise_put_by_rank(char *by_rank, const char *by_node, size_t block_bytes, const collwise_nodes *nodes);

/* Blocks of a leader in an alltoall, ordered by node, then by the senders' places, then by the receivers'. They are
 * made of `gathered`, which has all blocks of each of the `on_node` processes of its node in the order of receivers'
 * ranks; and `sorted` is made of them, which has all blocks for each such process in the order of senders' ranks.
 * The processes' rows in these two are in the order of places, or where `rows` says for each place. */
void collwise_put_by_receiving_node(char *packed, const char *gathered, size_t block_bytes, int on_node,
                                    const int *rows, const collwise_nodes *nodes);
void collwise_put_by_receiver(char *sorted, const char *packed, size_t block_bytes, int on_node, const int *rows,
                              const collwise_nodes *nodes);

/* --- Trees over both levels (two_levels.c) ------------------------------------------------------------------------ */

/* Collectives over trees of one form, one of the leaders and one on each node. Segments are under way on one level
 * while others are on the other. */
void collwise_two_level_bcast(collwise_topology topology, char *data, size_t bytes, int root, MPI_Comm comm,
                              collwise_parameters with);
/* Reductions keep rank order if subtrees hold consecutive ranks. If the operation does not commute, process 0 is the
 * root of the trees; where nodes do not have consecutive ranks either, there is one binomial tree. */
void collwise_two_level_reduce(collwise_topology topology, const char *data, char *result, size_t elements,
                               const collwise_operation *op, int root, MPI_Comm comm, collwise_parameters with);
void collwise_two_level_allreduce(collwise_topology topology, char *data, size_t elements, const collwise_operation *op,
                                  MPI_Comm comm, collwise_parameters with);

/* --- Two trees (two_tree_edges.c) --------------------------------------------------------------------------------- */

/* An edge of one of the two trees, seen from a process at one of its ends. It carries a segment in every other step. */
typedef struct {
    int peer; /* the rank at the other end */
    size_t next_step;
    collwise_segment segment; /* which it carries in `next_step`; none are left where there is no edge */
} collwise_edge;

/* The calling process's edges in one of the two trees, and how it sends along them. */
typedef struct {
    collwise_edge parent, children[2];
    collwise_start_function *start_send;
} collwise_edges;

/* `segments` are those of the half of the message that tree `tree` (0 or 1) carries. A reduction, for which `reversed`
 * is set, uses the edges in the reverse order of a broadcast. */
collwise_edges collwise_edges_in(int tree, int root, collwise_segment segments, int reversed, MPI_Comm comm);

/* The segment that an edge carries in this step, of 0 bytes if none. Called for one step after another. */
collwise_part collwise_edge_carries(collwise_edge *edge, size_t step);

/* The number of steps, given the segments of the longer half. */
size_t collwise_two_tree_steps(const collwise_segment *segments, MPI_Comm comm);

/* --- The fold to a power of two (fold.c) -------------------------------------------------------------------------- */

/* The processes that form the pairs that act as one, and the active one of each pair. */
typedef enum {
    COLLWISE_FOLD_INTO_EVEN,      /* ranks 2 i and 2 i + 1; the even one, but the root if it is one of them */
    COLLWISE_FOLD_INTO_ODD,       /* ranks 2 i and 2 i + 1; the odd one */
    COLLWISE_FOLD_LAST_INTO_FIRST /* ranks i and 2^steps + i; the lower one */
} collwise_fold_rule;

typedef struct {
    collwise_fold_rule rule;
    int root;
    int steps;    /* 2^steps processes are active, */
    int extra;    /* and as many as this are not: each is one of a pair */
    int rank;     /* of the calling process */
    int new_rank; /* its number among the active processes, -1 if it is not active */
    int partner;  /* the other process of its pair, -1 if it is in none */
    MPI_Comm comm;
} collwise_fold;

collwise_fold collwise_fold_of(collwise_fold_rule rule, int root, MPI_Comm comm);

/* The rank of an active process. */
int collwise_fold_rank(const collwise_fold *fold, int new_rank);

/* The new rank of the active process that acts for `rank`. */
int collwise_fold_new_rank(const collwise_fold *fold, int rank);

/* Processes that are not active get `data` from their partners. */
void collwise_fold_send_back(char *data, size_t bytes, const collwise_fold *fold);

/* --- Recursive halving (recursive_halving.c) ---------------------------------------------------------------------- */

/* The part of the elements that an active process still reduces after `steps` steps. */
collwise_part collwise_halving_part(size_t elements, int new_rank, int steps);

/* Each active process ends with the reduction of its part after all steps; rank order is kept. All else in `data` is
 * undefined then. */
void collwise_halving_reduce_scatter(char *data, size_t elements, const collwise_operation *op,
                                     const collwise_fold *fold);

/* Sends the contribution to part `given` to the partner. Receives the partner's to part `own`, and combines that
 * with ours in rank order. `received` has room for part `own`. */
void collwise_exchange_and_combine(char *data, collwise_part given, collwise_part own, char *received,
                                   const collwise_operation *op, int partner, MPI_Comm comm);

/* True if the algorithm is a mock-up that takes the program's buffers as they are. */
static inline int collwise_has_mock_up_form(const collwise_algorithm *algorithm) {
    return algorithm->guideline != NULL && (algorithm->kind == COLLWISE_ALLREDUCE || algorithm->kind == COLLWISE_SCAN ||
                                            algorithm->kind == COLLWISE_REDUCE_SCATTER_BLOCK);
}

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

/* --- Datatypes (types.c) ------------------------------------------------------------------------------------------ */

/* The bytes of an element in packed form, which MPI_Type_size does not tell for 2 GiB and more: its result is an int.
 */
size_t collwise_element_bytes(MPI_Datatype type);

/* True if the packed form of elements of `type` is also their own layout. */
int collwise_is_contiguous(MPI_Datatype type);

/* --- Layout and packed form (layout.c) --------------------------------------------------------------------------- */

/* Packs `count` elements, or unpacks them; contiguous data is copied at once. */
void collwise_pack(char *packed, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);
void collwise_unpack(const char *packed, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);

/* The same for a type that is not contiguous, one element after another. */
typedef enum { COLLWISE_PACK, COLLWISE_UNPACK } collwise_direction;
void collwise_move(collwise_direction way, char *packed, char *buffer, size_t count, MPI_Datatype type, MPI_Comm comm);

/* Memory for `elements` elements in an operand's own layout, to be freed with free(); *first is where element 0 counts
 * from. */
char *collwise_make_layout(const collwise_operation *op, size_t elements, char **first);

/* The beginning and end of an element's data, in bytes from its address. */
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

#endif
