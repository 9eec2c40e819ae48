/* Sessions: a communicator of their own, and a clock. */
#include "session.h"

#include <math.h>
#include <stdlib.h>

static double wtime(void *context) { return (void)context, MPI_Wtime(); }

/* The smallest positive difference between readings, or 0 if the clock does not move. */
static double resolution(const cw_session *session) {
    enum { READINGS = 10000 };
    double least = INFINITY, before = cw_clock_own(session);
    for (int i = 0; i < READINGS; i++) {
        double now = cw_clock_own(session);
        if (now > before) {
            least = fmin(least, now - before);
        }
        before = now;
    }
    return isinf(least) ? 0 : least;
}

cw_session *cw_open(MPI_Comm comm, cw_now now, void *now_context) {
    cw_session *session = calloc(1, sizeof *session);
    int made = session != NULL, everywhere;
    MPI_Allreduce(&made, &everywhere, 1, MPI_INT, MPI_MIN, comm);
    if (!everywhere) {
        free(session);
        return NULL;
    }
    MPI_Comm_dup(comm, &session->comm);
    MPI_Comm_rank(session->comm, &session->rank);
    MPI_Comm_size(session->comm, &session->procs);
    session->now = now == NULL ? wtime : now;
    session->now_context = now_context;
    session->synchronised = -INFINITY;
    double of_clock[] = {resolution(session), MPI_Wtick()};
    cw_reduce_maximum(session, 0, of_clock, 2);
    cw_broadcast(session, 0, of_clock, (int)sizeof of_clock);
    session->resolution = of_clock[0];
    session->tick = of_clock[1];
    return session;
}

void cw_close(cw_session *session) {
    MPI_Comm_free(&session->comm);
    free(session);
}
