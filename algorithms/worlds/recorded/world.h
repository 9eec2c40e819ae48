/* The machine and its MPI library, as algorithms see them where they are recorded. */
#ifndef COLLWISE_WORLD_H
#define COLLWISE_WORLD_H

enum { COLLWISE_TOKEN_BYTES = 0, COLLWISE_TAKES_SHORT_WAYS = 0, COLLWISE_POLLS_TAKE_TIME = 1 };

#endif
