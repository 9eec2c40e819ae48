#include "session.h"

#include <math.h>
#include <time.h>

/* Ping-pongs for each point of the clock, and for each check. */
enum { PINGPONGS = 20 };
/* Points taken when the clock is new, and the pause between two of them. */
enum { FIRST_POINTS = 8 };
#define PAUSE_NANOSECONDS 5000000
/* A coarse clock may measure a roundtrip of 0. */
#define MIN_ROUNDTRIP_SECONDS 1e-9

typedef struct {
    double own;        /* reading of the asking process's clock in the middle of the roundtrip */
    double difference; /* the other clock's minus this one's */
    double roundtrip;
} point;

double cw_clock_own(const cw_session *session) { return session->now(session->now_context); }

double cw_clock_at(const cw_session *session, double own_seconds) {
    return own_seconds + session->to_global.at_origin + session->to_global.slope * (own_seconds - session->origin);
}

double cw_clock_seconds(const cw_session *session) { return cw_clock_at(session, cw_clock_own(session)); }

double cw_clock_age(const cw_session *session) { return cw_clock_own(session) - session->synchronised; }

static point ping(const cw_session *session, int other, double (*read)(const cw_session *)) {
    point best = {0, 0, INFINITY};
    for (int i = 0; i < PINGPONGS; i++) {
        double other_reading, before = read(session);
        MPI_Send(NULL, 0, MPI_BYTE, other, 0, session->comm);
        MPI_Recv(&other_reading, 1, MPI_DOUBLE, other, 0, session->comm, MPI_STATUS_IGNORE);
        double after = read(session);
        if (after - before < best.roundtrip) {
            best = (point){(before + after) / 2, other_reading - (before + after) / 2, after - before};
        }
    }
    return best;
}

static void pong(const cw_session *session, int other, double (*read)(const cw_session *)) {
    for (int i = 0; i < PINGPONGS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, other, 0, session->comm, MPI_STATUS_IGNORE);
        double reading = read(session);
        MPI_Send(&reading, 1, MPI_DOUBLE, other, 0, session->comm);
    }
}

static void add_point(cw_session *session, point one) {
    int at = session->points++ % CW_CLOCK_POINTS;
    session->own[at] = one.own - session->origin;
    session->difference[at] = one.difference;
    double width = fmax(one.roundtrip, MIN_ROUNDTRIP_SECONDS);
    session->weight[at] = 1 / (width * width);
}

/* The line from this process's clock to the global one, from its points and the line of its parent in the tree. */
static cw_line line_to_global(const cw_session *session, cw_line parent, double parent_origin) {
    int count = session->points < CW_CLOCK_POINTS ? session->points : CW_CLOCK_POINTS;
    cw_line own = cw_fit_line(session->own, session->difference, session->weight, count);
    return cw_compose(parent, parent_origin, own, session->origin);
}

/* One more point for every process, in ceil(log2 P) rounds, in which the number of synchronised processes doubles. */
static void synchronise_once(cw_session *session) {
    int rank = session->rank;
    for (int synchronised = 1; synchronised < session->procs; synchronised *= 2) {
        if (rank < synchronised && rank + synchronised < session->procs) {
            double line[] = {session->to_global.at_origin, session->to_global.slope, session->origin};
            pong(session, rank + synchronised, cw_clock_own);
            MPI_Send(line, 3, MPI_DOUBLE, rank + synchronised, 0, session->comm);
        } else if (rank >= synchronised && rank < 2 * synchronised) {
            double parent[3];
            add_point(session, ping(session, rank - synchronised, cw_clock_own));
            MPI_Recv(parent, 3, MPI_DOUBLE, rank - synchronised, 0, session->comm, MPI_STATUS_IGNORE);
            session->to_global = line_to_global(session, (cw_line){parent[0], parent[1]}, parent[2]);
        }
    }
    session->synchronised = cw_clock_own(session);
}

void cw_clock_synchronise(cw_session *session) {
    const struct timespec pause = {0, PAUSE_NANOSECONDS};
    if (isinf(session->synchronised)) {
        session->origin = cw_clock_own(session);
        for (int i = 1; i < FIRST_POINTS; i++) {
            synchronise_once(session);
            nanosleep(&pause, NULL);
        }
    }
    synchronise_once(session);
}

void cw_clock_check(cw_session *session, double *offset_seconds, double *bound_seconds) {
    double worst[2] = {0, 0};
    for (int other = 1; other < session->procs; other++) {
        if (session->rank == 0) {
            pong(session, other, cw_clock_seconds);
        } else if (session->rank == other) {
            point found = ping(session, 0, cw_clock_seconds);
            worst[0] = fabs(found.difference);
            worst[1] = fabs(found.difference) + found.roundtrip / 2;
        }
    }
    cw_reduce_maximum(session, 0, worst, 2);
    cw_broadcast(session, 0, worst, (int)sizeof worst);
    *offset_seconds = worst[0];
    *bound_seconds = worst[1];
}
