/* Declarations that the parts of the engine share: processes (engine.c), what they do at once (strands.c), messages
 * (messages.c), models without a trace (models.c), ports (ports.c, stages.c), what plays a schedule by these (play.c),
 * and their failure, memory (memory.c) and comparisons (comparisons.c). */
#ifndef COLLWISE_PLAY_H
#define COLLWISE_PLAY_H

#include "engine.h"
#include "events.h"

#include <math.h>
#include <setjmp.h>

/* A message that passes no link between switches has up to two stages; only such messages are compared. */
enum { NONE = -1, MAX_STAGES = 32, COMPARED_STAGES = 2 };

/* Bytes that come from memory together. What is needed for one message lies in few of them. */
enum { LINE_BYTES = 64 };

/* A message, from the first of send and receive that is posted until its receive is complete. */
typedef struct {
    double send_seconds, receive_seconds; /* when they are posted */
    double arrival_seconds;               /* when all of it is at the receiver; infinite until that is known */
    double start_seconds;                 /* when it may leave */
    int32_t source, destination;
    int32_t connection;
    int32_t next; /* in a list of unmatched or of free messages */
    uint32_t size;
    uint32_t send_slot, receive_slot; /* the requests to complete */
    uint8_t is_sent, is_posted, is_local, protocol;
} message;

/* The spans that it waited for, on either side and until it started, and the one of its arrival. */
typedef struct {
    int32_t sent, posted, started, arrived;
} message_spans;

/* The same message on its way over ports. */
typedef struct transit transit;

/* The messages from one process to another. */
typedef struct {
    int32_t first, last; /* unmatched messages: sends, or receives; NONE or undefined if there are none */
    int32_t latest;      /* over ports, the message that was started last, NONE if it has passed all stages */
    int32_t route;       /* between the switches of its processes, NONE before its first message */
} connection;

/* The time of a send that is complete when it is posted: a wait for it changes no time. */
#define COMPLETE_AT_ONCE (-INFINITY)

/* A request, or a blocking operation. */
typedef struct {
    double seconds; /* when it is complete; infinite until that is known, COMPLETE_AT_ONCE */
    int32_t after;  /* the span that made it complete */
    uint32_t size : 28, is_receive : 1, is_local : 1, is_awaited : 1, is_free : 1; /* free: without an overhead */
} request;

/* The time when one of several requests is complete. */
typedef struct {
    double seconds;
    uint32_t number;
} moment;

/* One of the things that a process does at once. */
typedef struct {
    size_t at, end;      /* its next word, and behind its last one */
    uint32_t first_slot; /* of its requests */
    uint32_t made;       /* requests since its last wait */
    uint32_t open;       /* those that it waits for, and the process has not taken */
} strand;

/* A process does several things at once: it waits for what comes first. */
typedef struct {
    strand *list;
    uint32_t count, left; /* how many there are, and how many are not over */
    uint32_t begun;       /* they begin in two rounds: how many have begun in the first, and after it in the second */
    uint32_t current;     /* the one that the process went on with last */
    int is_working;       /* the process waits for the end of its own work, and takes nothing */
    moment *complete;     /* requests that they wait for, by time, from `first` to before `end` of `room` */
    uint32_t first, end, room;
    double next_seconds;   /* when the process takes the first one of these */
    double latest_seconds; /* when that was complete which it took last */
} strands;

typedef struct {
    const schedule_program *program;
    size_t at;                /* the next word */
    size_t row;               /* of its node's class, in tables by class and size */
    schedule_sources sources; /* of its program */
    int32_t node;
    double clock;
    int32_t after;     /* the span whose end the clock shows */
    uint64_t made;     /* requests */
    request *requests; /* a ring of mask + 1, one more for blocking operations, and those of strands */
    uint32_t mask;
    strands *strands;         /* NULL if its program has no strands */
    int32_t first_connection; /* to it; the others follow by the numbers of its program's sources */
    uint32_t unknown; /* of the requests waited for, how many have no time yet; while it is not 0 the process stops */
    double port_free_seconds;          /* point-to-point models: when the next message may leave */
    double receive_free_seconds;       /* the same: when the next message may arrive */
    int32_t port_after, receive_after; /* the spans that end then */
} process;

typedef struct ports ports;
typedef struct one_way one_way;
typedef struct play play;

/* Ports and packets tell processes what happens. Times may lie in the future, unless it is said otherwise. */
typedef struct {
    void (*message_left)(play *all, int32_t index, double seconds); /* the sender's request is complete */
    void (*message_arrived)(play *all, int32_t index, double seconds);
    /* The answer to a synchronous message leaves the receiver's node, so long after this had the message. */
    void (*answer)(play *all, int32_t index, double queued_seconds);
    /* It is the time, at which a process may go on that does several things at once. */
    void (*fork)(play *all, int rank, double seconds);
    /* All that happens at the present time has been told, and all processes go on that can. */
    void (*go_on)(play *all);
} play_listener;

/* The kinds of comparisons, and the entity of each (schedule_comparison). Those of a connection have a number for each
 * stage. */
typedef enum {
    COMPARED_CLOCK,   /* of a process: its clock and what it waited for */
    COMPARED_ORDER,   /* of a process: what it waited for and what it takes next */
    COMPARED_INTAKE,  /* of a process: when its port is free and what arrives */
    COMPARED_PORT,    /* of a process: when its port is free and what leaves */
    COMPARED_RECEIVE, /* of a connection: a message's arrival and its receive */
    COMPARED_SEND,    /* of a connection: a message's send and its receive */
    COMPARED_PATH,    /* of a connection: when its path within a node is free, and a message */
    COMPARED_TURN,    /* of a connection at a stage: when the message before ends, and when the next one comes */
    COMPARED_PASSED,  /* of a connection at a stage: when a message is served, and when the latency is over */
    COMPARED_EVENT,   /* of a stage: the event before, and an event */
    COMPARED_TOKENS,  /* of a stage: what is in its token bucket, and what that has room for or a message takes */
    COMPARED_QUEUE    /* of a stage: what is left of its next message, and what of each is in its queue */
} compared;

struct play {
    const schedule *played;
    const schedule_network *network;
    /* The processes that are played: all, or if what they do repeats along the ranks and nodes, those of the first
     * period, whose messages to others stand for those from others to them. */
    int procs;
    int32_t *link_of; /* then: the link that stands for each one between switches; NULL: each for itself */
    size_t sizes;
    process *processes;
    message *messages;
    message_spans *message_spans; /* one for each message; without a trace one for all, which nobody reads */
    size_t message_spans_room;
    transit *transits; /* one for each message; NULL for point-to-point models */
    size_t transit_room;
    size_t message_count, message_room;
    int32_t free_message;
    connection *connections;
    double *local_free_seconds; /* of each connection: when the path within a node is free again */
    size_t connection_count;
    request *requests; /* of all processes */
    moment *sorted;    /* those that a process has waited for, room for two copies */
    strands *strands;  /* of the processes that have some; and of all of these: */
    strand *each_strand;
    moment *complete;
    events forks_go_on; /* point-to-point models: when processes with strands take what comes first */
    int32_t *ready;     /* processes that can go on */
    size_t ready_count;
    int unfinished;
    schedule_trace *trace;     /* NULL if none is wanted */
    schedule_log *log;         /* NULL if none is wanted */
    const play_listener *tell; /* what the processes are told */
    ports *ports;              /* NULL for point-to-point models */
    one_way *one_way;          /* the order in which nodes are played, NULL: all together */
    double now;                /* the time that events have reached */
    double max_seconds;        /* after which playing may stop */
    jmp_buf give_up;
    schedule_result result;
};

/* Plays what waits for events, is traced or compared, or fails. */
schedule_result play_by_events(const schedule *played, const schedule_network *network, int root, double *ends,
                               double max_seconds, schedule_trace *trace, schedule_log *log);

_Noreturn void play_fail(play *all, const char *format, ...);
void *play_checked(play *all, void *memory);
void *play_grown(play *all, void *items, size_t count, size_t *room, size_t item_bytes);
/* The same for items that begin with a line of the caches; to be freed by play_free_lines. */
void *play_grown_lines(play *all, void *items, size_t count, size_t *room, size_t item_bytes);
void play_free_lines(void *items);

/* Without the care that fmax and fmin take of values that are no numbers. */
static inline double play_later(double one, double other) { return one > other ? one : other; }
static inline double play_earlier(double one, double other) { return one < other ? one : other; }

/* Sorts by time, keeping the order of equal times, and returns where the result is: in `items` or `other`. */
moment *play_sort(moment *items, moment *other, size_t count);

/* The protocol of a send of that kind, where messages of its size usually have the given one. */
static inline schedule_protocol play_protocol_of(schedule_kind kind, uint8_t usual) {
    if (kind != SCHEDULE_START_SYNCHRONOUS) {
        return (schedule_protocol)usual;
    }
    return usual == SCHEDULE_EAGER || usual == SCHEDULE_ACKNOWLEDGED ? SCHEDULE_CONFIRMED : SCHEDULE_RENDEZVOUS;
}

static inline int play_waits_for_receive(uint8_t protocol) {
    return protocol == SCHEDULE_RENDEZVOUS || protocol == SCHEDULE_DEFERRED;
}

static inline int play_is_no_message(uint8_t protocol) { return protocol >= SCHEDULE_FLAG; }

/* Returns whether messages of all of the schedule's sizes leave at once, and their senders go on. */
static inline int play_all_are_eager(const schedule *played, const schedule_network *network) {
    size_t size = 0;
    while (size < played->size_count && network->protocol[size] == SCHEDULE_EAGER) {
        size++;
    }
    return size == played->size_count;
}

/* Notes a comparison of the entity with that number among those that have such comparisons. */
void play_note_comparison(play *all, compared what, size_t number, uint32_t detail, double one, double other);
static inline void play_compare(play *all, compared what, size_t number, uint32_t detail, double one, double other) {
    if (all->log != NULL) {
        play_note_comparison(all, what, number, detail, one, other);
    }
}

/* Brings the comparisons into the order of their entities, those of one in the order in which they were made. */
void play_sort_comparisons(play *all);

static inline size_t class_index(const play *all, int rank, uint32_t size) { return all->processes[rank].row + size; }

/* True if a message within a node goes from one socket to another, and its times. */
static inline int play_crosses(const play *all, const message *one) {
    const schedule_network *network = all->network;
    return network->sockets > 0 && network->socket_of[one->source] != network->socket_of[one->destination];
}

static inline double play_local_latency(const play *all, const message *one) {
    size_t at = class_index(all, one->source, one->size);
    return (play_crosses(all, one) ? all->network->cross_latency_seconds : all->network->local_latency_seconds)[at];
}

static inline double play_local_transfer(const play *all, const message *one) {
    size_t at = class_index(all, one->source, one->size);
    return (play_crosses(all, one) ? all->network->cross_transfer_seconds : all->network->local_transfer_seconds)[at];
}
static inline size_t pair_index(const play *all, const message *one) {
    size_t classes = (size_t)all->network->classes;
    return all->processes[one->source].row * classes + all->processes[one->destination].row + one->size;
}
/* The route between the switches of its nodes. */
static inline size_t route_index(const play *all, const message *one) {
    return (size_t)all->connections[one->connection].route;
}
/* A time between nodes: that of their classes, and what the route adds. */
static inline double between_nodes(const play *all, const message *one, const double *seconds, const double *factor) {
    double on_route = all->network->switches > 0 ? all->network->route_seconds[route_index(all, one)] : 0;
    return on_route > 0 ? seconds[pair_index(all, one)] + on_route * factor[one->size] : seconds[pair_index(all, one)];
}
static inline double between_nodes_latency(const play *all, const message *one) {
    return between_nodes(all, one, all->network->latency_seconds, all->network->latency_factor);
}

/* Makes room for the transit of one more message. */
void play_ports_make_room(play *all, size_t count);
ports *play_ports_make(play *all);
void play_ports_free(ports *to);
/* A message starts at that time, which is not in the past. */
void play_ports_start(play *all, int32_t index, double seconds);
/* The same for the answer to a message, which takes no room on ports. */
void play_ports_start_answer(play *all, int32_t index, double seconds);
/* From now on messages that come to other nodes stay there until these begin. */
void play_ports_use_inboxes(play *all);
/* Goes back to the start, where only that node's processes are played, whose messages are there. */
void play_ports_begin_node(play *all, int32_t node);
/* At that time, which is not in the past, the process may go on that does several things at once. */
void play_ports_start_fork(play *all, int rank, double seconds);
/* Handles events until there are none. */
void play_ports_run(play *all);
/* Returns the resource that a message on its way, or just arrived, waited for last. */
schedule_resource play_ports_waited_for(const play *all, int32_t index);

#endif
