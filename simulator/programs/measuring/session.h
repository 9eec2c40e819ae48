/* Declarations that the files of the measuring library share. */
#ifndef COLLWISE_MEASURING_SESSION_H
#define COLLWISE_MEASURING_SESSION_H

#include "collwise_measuring.h"
#include "statistics.h"

struct cw_session {
    MPI_Comm comm; /* a duplicate of the user's */
    int rank, procs;
    cw_now now;
    void *now_context;
    double resolution, tick;
    /* The points: the parent's clock minus this process's, at readings of this process's clock since `origin`. */
    double origin;
    double own[CW_CLOCK_POINTS], difference[CW_CLOCK_POINTS], weight[CW_CLOCK_POINTS];
    int points;           /* all points ever taken */
    cw_line to_global;    /* added to this clock, counted from `origin`, gives the global one */
    double synchronised;  /* this clock's reading at the last synchronisation; negative infinity: never */
    double slack_seconds; /* on the root, for rounds: the time between announcement and start */
};

/* Broadcasts process `root`'s data. */
void cw_broadcast(const cw_session *session, int root, void *data, int bytes);

/* Process `root` gets the maximum of each value; at most CW_MAX_VALUES of them. */
enum { CW_MAX_VALUES = 8 };
void cw_reduce_maximum(const cw_session *session, int root, double *values, int count);

#endif
