/* Sessions, and the collectives that measuring itself needs, of point-to-point messages, so that their trees are
 * known. */
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

void cw_barrier(const cw_session *session) {
    int procs = session->procs, rank = session->rank;
    for (int distance = 1; distance < procs; distance *= 2) {
        MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % procs, 0, NULL, 0, MPI_BYTE,
                     (rank - distance + procs) % procs, 0, session->comm, MPI_STATUS_IGNORE);
    }
}

/* Down an in-order binomial tree, larger subtrees first. */
void cw_broadcast(const cw_session *session, int root, void *data, int bytes) {
    int procs = session->procs, place = (session->rank - root + procs) % procs, distance = 1;
    while (distance < procs && place % (2 * distance) == 0) {
        distance *= 2;
    }
    if (place != 0) {
        MPI_Recv(data, bytes, MPI_BYTE, (session->rank - distance + procs) % procs, 0, session->comm,
                 MPI_STATUS_IGNORE);
    }
    for (distance /= 2; distance > 0; distance /= 2) {
        if (place + distance < procs) {
            MPI_Send(data, bytes, MPI_BYTE, (session->rank + distance) % procs, 0, session->comm);
        }
    }
}

/* Up the same tree. */
void cw_reduce_maximum(const cw_session *session, int root, double *values, int count) {
    int procs = session->procs, place = (session->rank - root + procs) % procs;
    for (int distance = 1; distance < procs; distance *= 2) {
        if (place % (2 * distance) != 0) {
            MPI_Send(values, count, MPI_DOUBLE, (session->rank - distance + procs) % procs, 0, session->comm);
            return;
        }
        if (place + distance < procs) {
            double received[CW_MOST_VALUES];
            MPI_Recv(received, count, MPI_DOUBLE, (session->rank + distance) % procs, 0, session->comm,
                     MPI_STATUS_IGNORE);
            for (int i = 0; i < count; i++) {
                values[i] = fmax(values[i], received[i]);
            }
        }
    }
}
