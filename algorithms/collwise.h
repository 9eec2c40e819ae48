/* The collectives of collwise, for C programs: pick an algorithm by name, run it in place of the MPI call.
 *
 *     const collwise_algorithm *ring = collwise_find("allreduce", "ring");
 *     collwise_call call = {.send = MPI_IN_PLACE, .receive = data, .receive_count = n, .receive_type = MPI_DOUBLE,
 *                           .op = MPI_SUM, .comm = comm};
 *     if (collwise_objection(ring, &call) == NULL) {
 *         collwise_run(ring, &call, (collwise_parameters){.segment_bytes = 0});
 *     }
 *
 * Arguments have the meaning that they have in the MPI call, MPI_IN_PLACE included; every process of an
 * intracommunicator calls with the same algorithm and parameters. Messages are sent on a private duplicate of the
 * communicator, whose errors are fatal. All processes must share one data representation. */
#ifndef COLLWISE_H
#define COLLWISE_H

#include <mpi.h>
#include <stddef.h>

/* The parameters that can be chosen for an algorithm. Each algorithm uses at most one size, one number and a second
 * size; catalogue.toml has their names. */
typedef struct {
    union {
        size_t part_bytes;    /* any of the following */
        size_t segment_bytes; /* the segments of the message; 0: it is not segmented */
        size_t first_bytes;   /* the first of two parts of a block; 0: the algorithm's choice */
        size_t bound_bytes;   /* the parts of a block stay below it; 0: blocks are not cut */
    };
    union {
        int count;        /* any of the following; 0: the algorithm's default */
        int chains;       /* below the root */
        int radix;        /* of the tree */
        int max_requests; /* exchanges under way at a time */
        int within;       /* how processes of a node communicate: collwise_within */
        int leaders;      /* processes of each node that communicate with other nodes */
    };
    union {
        size_t limit_bytes;           /* size up to which blocks are cut; 0: no limit */
        size_t between_segment_bytes; /* the parts in which a segment goes between nodes; 0: it is not cut */
    };
} collwise_parameters;

/* The ways in which tasks communicate within a node. */
typedef enum {
    COLLWISE_WITHIN_MESSAGES,  /* binomial trees of point-to-point messages */
    COLLWISE_WITHIN_SHARED,    /* copies through a shared window */
    COLLWISE_WITHIN_ONE_SIDED, /* MPI_Put and MPI_Get */
    COLLWISE_WITHIN_SOCKETS,   /* binomial trees within sockets, and one of their leaders: a third level */
    COLLWISE_WITHIN_FORMS      /* how many there are */
} collwise_within;

/* The arguments of one call of any collective; those that MPI's own call does not have are left out. The one buffer
 * of a broadcast is `receive`. Reductions take count and type from `receive`, too; reduce_scatter's counts, one a
 * process, are `receive_counts`. */
typedef struct {
    const void *send;
    int send_count;
    const int *send_counts, *send_displacements;
    MPI_Datatype send_type;
    void *receive;
    int receive_count;
    const int *receive_counts, *receive_displacements;
    MPI_Datatype receive_type;
    MPI_Op op;
    int root;
    MPI_Comm comm;
} collwise_call;

/* The operation of a reduction on elements that lie packed, one after another, `element_bytes` each (operation.c). */
typedef struct {
    MPI_Op op;
    MPI_Datatype type;
    size_t element_bytes;
    int commutative;
    int contiguous; /* whether the packed form is also the type's own layout */
    double seconds_per_byte;
    MPI_Comm comm;
} collwise_operation;

/* The forms an algorithm has. `comm` is the private communicator; there are at least two processes. Data is bytes,
 * blocks lie in rank order; `offsets` has P + 1 entries, block i being bytes offsets[i] to offsets[i + 1] - 1. What a
 * process sends to itself is already in place. Reductions take `data` as the process's own contribution. */
typedef void collwise_bcast_function(char *data, size_t bytes, int root, MPI_Comm comm, collwise_parameters with);
/* `all` is significant at the root only. */
typedef void collwise_gather_function(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                                      collwise_parameters with);
/* `all` and `offsets` are significant at the root only, and the others do not know one another's sizes. */
typedef void collwise_gatherv_function(const char *mine, size_t my_bytes, char *all, const size_t *offsets, int root,
                                       MPI_Comm comm, collwise_parameters with);
/* `all` is significant at the root only, `mine` everywhere else. */
typedef void collwise_scatter_function(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                                       collwise_parameters with);
typedef void collwise_scatterv_function(const char *all, const size_t *offsets, char *mine, size_t my_bytes, int root,
                                        MPI_Comm comm, collwise_parameters with);
typedef void collwise_allgather_function(char *all, size_t block_bytes, MPI_Comm comm, collwise_parameters with);
typedef void collwise_allgatherv_function(char *all, const size_t *offsets, MPI_Comm comm, collwise_parameters with);
typedef void collwise_alltoall_function(const char *send, char *receive, size_t block_bytes, MPI_Comm comm,
                                        collwise_parameters with);
typedef void collwise_alltoallv_function(const char *send, const size_t *send_offsets, char *receive,
                                         const size_t *receive_offsets, MPI_Comm comm, collwise_parameters with);
typedef void collwise_barrier_function(MPI_Comm comm, collwise_parameters with);
/* `result` is significant at the root only, and does not overlap `data`. */
typedef void collwise_reduce_function(const char *data, char *result, size_t elements, const collwise_operation *op,
                                      int root, MPI_Comm comm, collwise_parameters with);
/* `data` ends as the reduction over all processes, or over those up to (scan) or before (exscan) this one. */
typedef void collwise_allreduce_function(char *data, size_t elements, const collwise_operation *op, MPI_Comm comm,
                                         collwise_parameters with);
typedef collwise_allreduce_function collwise_scan_function;
typedef collwise_allreduce_function collwise_exscan_function;
/* `data` holds all blocks and is scratch space too; this process's block of the reduction ends in `mine`. Here
 * `offsets` counts elements. */
typedef void collwise_reduce_scatter_function(char *data, const size_t *offsets, char *mine,
                                              const collwise_operation *op, MPI_Comm comm, collwise_parameters with);
typedef collwise_reduce_scatter_function collwise_reduce_scatter_block_function;
/* Mock-ups of allreduce, scan and reduce_scatter_block, which use the program's buffers as they are: `own` and `result`
 * are one where the program calls in place. `elements` are those of the result. */
typedef void collwise_mock_up_function(const char *own, char *result, size_t elements, const collwise_operation *op,
                                       MPI_Comm comm);

/* The extra memory of a mock-up: for messages, and for lists of counts and displacements. */
typedef struct {
    size_t message_bytes, integer_bytes;
} collwise_memory;

/* The memory of the process that needs most, in the terms of table 1 of Hunold & Carpen-Amarie 2018: n, p, c and C, all
 * but p in bytes. */
typedef collwise_memory collwise_memory_function(size_t n, size_t procs, size_t padding, size_t chunk);

/* Requirements on a call, without which the algorithm does not apply. */
enum {
    COLLWISE_NEEDS_POWER_OF_TWO = 1, /* processes */
    COLLWISE_NEEDS_EVEN = 2,         /* number of processes */
    COLLWISE_NEEDS_COMMUTATIVE = 4   /* operation */
};

typedef enum {
    COLLWISE_BCAST,
    COLLWISE_GATHER,
    COLLWISE_GATHERV,
    COLLWISE_SCATTER,
    COLLWISE_SCATTERV,
    COLLWISE_ALLGATHER,
    COLLWISE_ALLGATHERV,
    COLLWISE_ALLTOALL,
    COLLWISE_ALLTOALLV,
    COLLWISE_BARRIER,
    COLLWISE_REDUCE,
    COLLWISE_ALLREDUCE,
    COLLWISE_REDUCE_SCATTER,
    COLLWISE_REDUCE_SCATTER_BLOCK,
    COLLWISE_SCAN,
    COLLWISE_EXSCAN,
    COLLWISE_COLLECTIVES /* how many there are */
} collwise_collective;

/* "bcast", "gather" and so on, as in the catalogue. */
extern const char *const collwise_collective_names[COLLWISE_COLLECTIVES];

typedef struct {
    collwise_collective kind;
    const char *collective; /* the kind's name: "bcast" */
    const char *name;
    const char *part_parameter;  /* the name of its size parameter, NULL if it has none */
    const char *count_parameter; /* the name of its number, NULL if it has none */
    int default_count;
    const char *limit_parameter; /* the name of its second size, NULL if it has none */
    unsigned needs;
    int by_node;              /* whether it treats processes of one node differently from others */
    int real_mpi_only;        /* whether it cannot be simulated */
    const char *guideline;    /* the performance guideline that it is a mock-up of ("GL1"), NULL if it is none */
    int calls_reduce_scatter; /* of a mock-up: whether MPI_Reduce_scatter or its block form is one of its calls, */
    int pads;                 /* and whether it extends the message to a multiple of P elements */
    collwise_memory_function *extra_memory; /* of a mock-up, else NULL */
    union {
        collwise_bcast_function *bcast;
        collwise_gather_function *gather;
        collwise_gatherv_function *gatherv;
        collwise_scatter_function *scatter;
        collwise_scatterv_function *scatterv;
        collwise_allgather_function *allgather;
        collwise_allgatherv_function *allgatherv;
        collwise_alltoall_function *alltoall;
        collwise_alltoallv_function *alltoallv;
        collwise_barrier_function *barrier;
        collwise_reduce_function *reduce;
        collwise_allreduce_function *allreduce;
        collwise_reduce_scatter_function *reduce_scatter;
        collwise_reduce_scatter_block_function *reduce_scatter_block;
        collwise_scan_function *scan;
        collwise_exscan_function *exscan;
        collwise_mock_up_function *mock_up; /* of an allreduce, scan or reduce_scatter_block with a guideline */
    };
} collwise_algorithm;

/* Every algorithm of the catalogue, ended by an entry whose collective is NULL. Generated from catalogue.toml. */
extern const collwise_algorithm collwise_registry[];

/* The entry, or NULL if the catalogue has no such algorithm. */
const collwise_algorithm *collwise_find(const char *collective, const char *name);

/* The reason why the algorithm does not apply to the call, or NULL if it does. All processes get the same answer. */
const char *collwise_objection(const collwise_algorithm *algorithm, const collwise_call *call);

/* The same for P processes and any operation that commutes. */
const char *collwise_procs_objection(const collwise_algorithm *algorithm, int procs);
/* The reason why the algorithm does not run with that `count` of collwise_parameters, or NULL. */
const char *collwise_count_objection(const collwise_algorithm *algorithm, int count);

/* Runs an algorithm that applies. */
void collwise_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with);

/* Makes the communicators and windows that the algorithm needs for the call, which the first run would otherwise make.
 * A collective call, like those. */
void collwise_prepare(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with);

/* Sets the node and the socket of the process, for algorithms that look at these: processes with equal numbers share
 * one. Without it they ask MPI which processes share memory, and the system on which socket the process is bound.
 * Collective, like these algorithms. */
void collwise_place(MPI_Comm comm, int node, int socket);

/* The sizes of the two buffers that mock-ups use on each communicator, unless collwise_limit_memory() sets others. */
#define COLLWISE_MESSAGE_BUFFER_BYTES ((size_t)128 << 20)
#define COLLWISE_INTEGER_BUFFER_BYTES ((size_t)1 << 20)

/* Sets these sizes, to the same on all processes, before a mock-up runs. One that needs more has an objection. */
void collwise_limit_memory(collwise_memory most);

/* The memory that a mock-up takes for a message (bytes as the catalogue counts them). The element size is 1 unless
 * elements are reduced. */
collwise_memory collwise_extra_memory(const collwise_algorithm *algorithm, size_t message_bytes, size_t element_bytes,
                                      int procs);

/* A dissemination barrier: ceil(log2 P) rounds, against the linear ones that some engines have. */
void collwise_barrier(MPI_Comm comm);

/* The private duplicate of `comm`, made on first use (a collective call then) and freed with it. */
MPI_Comm collwise_private(MPI_Comm comm);

#endif
