/* Times of a schedule on a network. Seconds and bytes throughout; the result does not depend on the machine or on how
 * often it is computed: events of one instant are handled in a fixed order (ports.c). */
#ifndef COLLWISE_ENGINE_H
#define COLLWISE_ENGINE_H

#include "recorder.h"

typedef enum {
    SCHEDULE_EAGER,      /* a message leaves when it is sent */
    SCHEDULE_RENDEZVOUS, /* it waits for its receive, and its sender until it has left */
    SCHEDULE_DEFERRED,   /* it waits for its receive, its sender does not: SMPI treats eager messages so. A synchronous
                            send then is a rendezvous that has no overhead at the receiver */
    SCHEDULE_CONFIRMED,  /* a synchronous send of an eager message: leaves when sent, its sender waits for an answer */
    SCHEDULE_ACKNOWLEDGED, /* it leaves when it is sent; its sender waits until the receiver's node has acknowledged all
                              of it. Within a node: eager. Not for point-to-point models */
    SCHEDULE_FLAG,         /* no message: a counter that another process of the node sees */
    SCHEDULE_OWN_COPY      /* no message: a copy through the node's memory */
} schedule_protocol;

/* The costs of messages and computation. Nodes of one class are alike. Tables by size have an entry for each size of
 * the schedule, tables by class and size have a row for each class, and tables by pair have a row for each sending and
 * receiving class: pair = sending class * classes + receiving class. */
typedef struct {
    int nodes, classes;
    const int32_t *node_of;  /* of each process */
    const int32_t *class_of; /* of each node */

    /* The processor's time. */
    const double *send_seconds;    /* by class and size: a blocking send, before the message leaves */
    const double *start_seconds;   /* a non-blocking send, the same */
    const double *receive_seconds; /* a receive, after the message has arrived */
    const double *local_seconds[SCHEDULE_LOCAL_KINDS]; /* by kind, from SCHEDULE_REDUCE on, and size */

    /* The protocol. */
    const uint8_t *protocol;         /* by size: a schedule_protocol */
    const double *handshake_seconds; /* by pair and size: from the later of send and receive until a message leaves that
                                        waits for its receive */
    const double *answer_seconds;    /* by pair and size: from when the receiver has an eager synchronous message until
                                        its sender knows; `queue_bytes` may add to it */
    int senders_wait_for_arrival;    /* rendezvous: not only until the message has left */

    /* Between nodes, by pair and size. */
    const double *latency_seconds;
    const double *transfer_seconds; /* of the message alone, after the latency */

    /* Point-to-point models only: the least time between two messages of a process, as sender by pair and size, as
     * receiver by class and size. */
    const double *gap_seconds, *receive_gap_seconds;

    /* Within a node, by class and size. */
    const double *local_latency_seconds, *local_transfer_seconds;
    const double *flag_seconds; /* by class: until a process sees that a counter of another one has grown */

    /* From one socket of a node to another, the same; not used if `sockets` is 0. */
    int sockets;              /* of each node */
    const int32_t *socket_of; /* of each process: on its node, from 0 on */
    const double *cross_latency_seconds, *cross_transfer_seconds;
    double cross_rate; /* which transfers that leave the same socket share; 0: they do not */

    /* Ports and links whose switches have finite buffers: packets and TCP (packets.h). Not used if `buffer_bytes` is 0,
     * for unlimited buffers. */
    double buffer_bytes; /* of each port of a switch */
    double retransmission_seconds;
    double packet_bytes, initial_window_packets;

    /* Ports and links; not used if `out_rate` is NULL, for point-to-point models. Rates in bytes per second. */
    const double *out_rate, *in_rate; /* by class */
    const double *burst_bytes;        /* by class: token bucket of both ports; 0: none */
    const double *load_bytes;         /* by size: which a message puts on ports and links */
    double acknowledgement_share;     /* of a flow's rate, in the opposite direction */
    double send_buffer_bytes;         /* of a connection: a sender no longer waits for this last part of a message;
                                         with packets also the most that is not acknowledged, 0: no limit */
    double queue_bytes; /* of each connection with messages at a node's port: an answer leaves after them */
    double memory_rate; /* which transfers within a node, and copies by shared memory, share; 0: they do not */
    double memory_share_of_ports; /* bytes of it that a byte through a node's port takes; 0: none */
    int without_local_overheads;  /* the latency within a node includes the overheads of sender and receiver */

    /* Switches between the ports; `switches` is 0 if they never limit a message. Links 2 i and 2 i + 1 are the two
     * directions of a cable. The route of a pair of switches = one * switches + other is the list of its links from
     * route_first[pair] to before route_first[pair + 1]. It adds its seconds, times a factor by size, to each of the
     * three times between nodes above. */
    int switches, links;
    const int32_t *switch_of; /* by node */
    const double *link_rate;  /* by link */
    const int64_t *route_first;
    const int32_t *route_links;
    const double *route_seconds;                                     /* by pair of switches */
    const double *latency_factor, *handshake_factor, *answer_factor; /* by size */
} schedule_network;

/* The kinds of activity that time is spent on. */
typedef enum {
    SCHEDULE_SPENT_SENDING,   /* the sender's processor */
    SCHEDULE_SPENT_ON_WAY,    /* a message, from when it may leave until all of it has arrived */
    SCHEDULE_SPENT_LEAVING,   /* the same until it has left its sender, which waits for that */
    SCHEDULE_SPENT_IN_GAP,    /* the sender's port, until the next message may leave */
    SCHEDULE_SPENT_TAKING_IN, /* the receiver's port, while messages arrive one after another */
    SCHEDULE_SPENT_RECEIVING, /* the receiver's processor */
    SCHEDULE_SPENT_REDUCING,
    SCHEDULE_SPENT_COPYING,
    SCHEDULE_SPENT_ALLOCATING,
    SCHEDULE_SPENT_MOVING,    /* copies by memory that the node's processes share, and waits for that memory */
    SCHEDULE_SPENT_ANSWERING, /* the receiver's answer to a synchronous send, on its way to the sender */
    SCHEDULE_SPENT_SEEING     /* until a process sees a counter of another one: its size has no meaning */
} schedule_spent;

/* The kinds of resources that messages share and wait for. */
typedef enum {
    SCHEDULE_PORT,    /* of a node */
    SCHEDULE_MEMORY,  /* of a node, or the path of two of its processes */
    SCHEDULE_SOCKETS, /* the path from a socket to others of its node */
    SCHEDULE_LINK     /* between switches */
} schedule_resource;

/* A span of time of one process, and the span before it without whose end it could not have begun. */
typedef struct {
    double begin_seconds, end_seconds;
    int32_t before; /* NONE: it begins with the schedule */
    int32_t process, peer;
    uint32_t size;
    uint32_t spent;     /* a schedule_spent */
    uint16_t is_local;  /* a message that is on its way, or leaving, within a node */
    uint16_t waits_for; /* then: the schedule_resource that it had to wait for last; of packets always the port */
} schedule_span;

/* All spans of a schedule, as they were found. Those that end with the last process and lead to its end are the
 * critical path: they follow one another without a gap. */
typedef struct {
    schedule_span *spans;
    size_t count, room;
    int32_t last;  /* of the critical path, NONE if that is empty */
    int of_period; /* wanted of those processes only that are played without a trace. Peers are numbered modulo their
                      count */
} schedule_trace;

/* A comparison that decided a time: of two times the later one or the earlier one counts. An event at a port or link is
 * compared with the one before it, and bytes of a token bucket as seconds at the port's rate. Comparisons of one
 * entity, such as a process or one side of a connection, are made in an order that does not depend on those of others.
 */
typedef struct {
    double one, other;
    uint32_t entity, kind; /* which entity, and what was compared */
} schedule_comparison;

/* All comparisons of a play, by entity (pipelines.py). */
typedef struct {
    schedule_comparison *items;
    size_t count, room;
} schedule_log;

typedef struct {
    double seconds;      /* until the last process is done */
    double root_seconds; /* until `root` is */
    uint64_t lost_packets, time_outs;
    int is_longer; /* than it was to take: then the times above are not known */
    int is_open;   /* a program that is cut ended at `seconds`, which is not after the time that it was to take */
    int failed;    /* a problem was found, see `problem` */
    char problem[160];
} schedule_result;

/* The bytes of a structure, by its place in layout.c; 0 of none. */
size_t schedule_layout(int structure);

/* Plays the schedule. Unless they are NULL, `ends` receives the time at which each process is done, `trace` the spans
 * of all processes, and `log` all comparisons; schedule_trace_free and schedule_log_free free them. */
schedule_result schedule_play(const schedule *played, const schedule_network *network, int root, double *ends,
                              schedule_trace *trace, schedule_log *log);
/* The same without them, which may stop as soon as it is known that the time is more than `max_seconds`. Only over
 * ports with unlimited buffers that is known before the end. Of a schedule with programs that are cut it says whether
 * the whole takes longer, or that this is open. */
schedule_result schedule_play_within(const schedule *played, const schedule_network *network, int root, double *ends,
                                     double max_seconds);
/* The time of a process's own overheads and local work, or of its messages at its node's ports. The larger one
 * counts, and messages are those to and from other nodes. No play is shorter. */
double schedule_own_seconds(const schedule *played, const schedule_network *network, int rank);
/* Plays the schedule, without trace and log, on several networks: `ends`, unless it is NULL, has the processes of one
 * network after those of another. Point-to-point models in succession with the same nodes and protocols are played in
 * one pass.
 */
void schedule_play_many(const schedule *played, const schedule_network *const *networks, size_t count, int root,
                        double *ends, schedule_result *results);
void schedule_trace_free(schedule_trace *trace);
void schedule_log_free(schedule_log *log);

#endif
