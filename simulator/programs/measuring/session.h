/* What the files of the measuring library share. */
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
    /* The clock of the process above in the tree minus this one's, at readings of this one since `origin`. */
    double origin;
    double own[CW_CLOCK_POINTS], difference[CW_CLOCK_POINTS], weight[CW_CLOCK_POINTS];
    int points;           /* all that were ever taken */
    cw_line to_global;    /* what is added to this clock, from `origin` on */
    double synchronised;  /* reading of this clock; negative infinity: never */
    double slack_seconds; /* root of rounds: between announcement and start */
};

/* Every process gets what process `root` has. */
void cw_tell(const cw_session *session, int root, void *data, int bytes);

/* Process `root` gets the largest of each value; at most CW_MOST_VALUES. */
enum { CW_MOST_VALUES = 8 };
void cw_gather_largest(const cw_session *session, int root, double *values, int count);

#endif
