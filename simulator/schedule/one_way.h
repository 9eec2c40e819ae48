/* Nodes whose messages never come back, as those of a tree without rendezvous messages: what a node does depends on
 * those alone that send it messages, directly or through others. Over ports each node can then be played to its end
 * before those that it sends messages to, so that what is needed at a time is that of one node. */
#ifndef COLLWISE_ONE_WAY_H
#define COLLWISE_ONE_WAY_H

#include "play.h"

struct one_way {
    int32_t *nodes; /* each node after all that send it messages */
    int32_t *first; /* the processes of node i are in `ranks`, from first[i] to before first[i + 1] */
    int32_t *ranks;
};

/* Finds the order of the nodes. NULL: there is none, or the order of events of different nodes may count. */
one_way *play_one_way_make(const play *all);
void play_one_way_free(one_way *of);

#endif
