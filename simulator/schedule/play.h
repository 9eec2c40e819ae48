/* Declarations that the two parts of the engine share: processes and matching (engine.c), and ports (ports.c). */
#ifndef COLLWISE_PLAY_H
#define COLLWISE_PLAY_H

#include "engine.h"

#include <setjmp.h>

enum { NONE = -1, MOST_STAGES = 6 };

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
    uint8_t is_sent, is_posted, protocol;
} message;

/* The spans that it had to wait for, on either side and until it started, and the one that ends with its arrival. */
typedef struct {
    int32_t sent, posted, started, arrived;
} message_spans;

/* The same message on its way over ports. */
typedef struct transit transit;

/* The messages from one process to another. */
typedef struct {
    int32_t first, last; /* unmatched messages: sends, or receives; NONE or undefined if there are none */
    int32_t latest;      /* over ports, the message that was started last, NONE if it has passed all stages */
} connection;

/* A request, or a blocking operation. */
typedef struct {
    double seconds; /* when it is complete; infinite until that is known */
    int32_t after;  /* the span that made it complete */
    uint32_t size : 29, is_receive : 1, is_local : 1, is_awaited : 1;
} request;

typedef struct {
    const schedule_program *program;
    size_t at; /* the next word */
    double clock;
    int32_t after;     /* the span whose end the clock shows */
    uint64_t made;     /* requests */
    request *requests; /* a ring of mask + 1, and one more for blocking operations */
    uint32_t mask;
    int32_t first_connection; /* to it; the others follow by the numbers of its program's sources */
    uint32_t unknown; /* of the requests waited for, how many have no time yet; while it is not 0 the process stops */
    double port_free_seconds;          /* point-to-point models: when the next message may leave */
    double receive_free_seconds;       /* the same: when the next message may arrive */
    int32_t port_after, receive_after; /* the spans that end then */
} process;

typedef struct ports ports;

typedef struct {
    const schedule *played;
    const schedule_network *network;
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
    request *sorted;   /* those that a process has waited for, room for two copies */
    int32_t *ready;    /* processes that can go on */
    size_t ready_count;
    int unfinished;
    schedule_trace *trace; /* NULL if none is wanted */
    ports *ports;          /* NULL for point-to-point models */
    double now;            /* the time that events have reached */
    jmp_buf give_up;
    schedule_result result;
} play;

_Noreturn void play_fail(play *all, const char *format, ...);
void *play_checked(play *all, void *memory);
void *play_grown(play *all, void *items, size_t count, size_t *room, size_t item_bytes);

/* Without the care that fmax and fmin take of values that are no numbers. */
static inline double play_later(double one, double other) { return one > other ? one : other; }
static inline double play_earlier(double one, double other) { return one < other ? one : other; }

static inline int class_of(const play *all, int rank) {
    const schedule_network *network = all->network;
    return network->class_of[network->node_of[rank]];
}
static inline size_t class_index(const play *all, int rank, uint32_t size) {
    return (size_t)class_of(all, rank) * all->sizes + size;
}
static inline size_t pair_index(const play *all, const message *one) {
    size_t classes = (size_t)all->network->classes;
    size_t pair = (size_t)class_of(all, one->source) * classes + (size_t)class_of(all, one->destination);
    return pair * all->sizes + one->size;
}
static inline int is_local(const play *all, const message *one) {
    return all->network->node_of[one->source] == all->network->node_of[one->destination];
}

/* The sender's request is complete, or the message is at the receiver; both may lie in the future. */
void play_message_left(play *all, int32_t index, double seconds);
void play_message_arrived(play *all, int32_t index, double seconds);
/* Lets all processes go on that can. */
void play_processes(play *all);

/* Makes room for the transit of one more message. */
void ports_make_room(play *all, size_t count);
ports *ports_make(play *all);
void ports_free(ports *to);
/* A message starts at that time, which is not in the past. */
void ports_start(play *all, int32_t index, double seconds);
/* Handles events until there are none. */
void ports_run(play *all);
/* Finds the numbers of the ports and links on a message's way, at most MOST_STAGES, and its latency; returns how many
 * they are. */
int ports_find_way(play *all, const message *one, int32_t *way, double *latency_seconds);

#endif
