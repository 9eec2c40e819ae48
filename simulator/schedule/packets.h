/* Messages between nodes as packets of TCP connections, for switches whose ports have finite buffers.
 *
 * Each pair of processes has a connection in each direction, which cuts its messages into packets. A node's own port
 * sends the packets of its connections by turns. The ports of switches, of which the one to the receiver is the last,
 * send packets in the order in which they come. As in ports.c, a packet's first byte reaches each port a share of the
 * latency after it began to leave the previous one. A packet that finds less room than its size in a switch's buffer is
 * lost. The receiver acknowledges each packet that arrives, and acknowledgements are never lost.
 *
 * A connection has at most a window of packets under way. The window grows by a packet with each acknowledged packet,
 * after a loss by a packet with each window (RFC 5681). A packet counts as lost when three later ones have been
 * acknowledged: it is sent again, and the window is halved, once for each window of packets (RFC 6675). What that does
 * not detect, the end of a message above all, is sent again when nothing has been acknowledged for the retransmission
 * time-out: the window is then one packet, and the time-out doubles until something is acknowledged (RFC 6298).
 *
 * Ties are resolved as in ports.c: events of one instant are handled in the order in which they were scheduled. */
#ifndef COLLWISE_PACKETS_H
#define COLLWISE_PACKETS_H

#include "events.h"
#include "play.h"

typedef struct packets packets;

/* The kinds of events of packets, above those of ports. */
enum { PACKETS_START = MAX_STAGES, PACKETS_PORT_FREE, PACKETS_REACH, PACKETS_ACKNOWLEDGED, PACKETS_TIME_OUT };

/* Finds the numbers of the ports and links on a message's way, at most MAX_STAGES, and its latency; returns how many
 * they are. */
typedef int packets_way(play *all, const message *one, int32_t *way, double *latency_seconds);

/* Packets on so many ports and links, whose costs play_packets_set_link then gives. */
packets *play_packets_make(play *all, size_t links, events *to, packets_way *way_of);
void play_packets_set_link(packets *of, size_t number, double rate, double burst_bytes, int32_t opposite);
void play_packets_free(packets *of);

/* A message starts, over the links that `way_of` gives. */
void play_packets_start(play *all, packets *of, int32_t message, double seconds);
void play_packets_handle(play *all, packets *of, event happened);

#endif
