#include "session.h"

#include <math.h>
#include <time.h>

/* Of one point of the clock, and of its check. */
enum { PINGPONGS = 20 };
/* When the clock is new; apart by this much. */
enum { FIRST_POINTS = 8 };
#define APART_NANOSECONDS 5000000
/* A coarse clock may see none. */
#define LEAST_ROUNDTRIP_SECONDS 1e-9

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

static point ask(const cw_session *session, int other, double (*read)(const cw_session *)) {
    point best = {0, 0, INFINITY};
    for (int i = 0; i < PINGPONGS; i++) {
        double theirs, before = read(session);
        MPI_Send(NULL, 0, MPI_BYTE, other, 0, session->comm);
        MPI_Recv(&theirs, 1, MPI_DOUBLE, other, 0, session->comm, MPI_STATUS_IGNORE);
        double after = read(session);
        if (after - before < best.roundtrip) {
            best = (point){(before + after) / 2, theirs - (before + after) / 2, after - before};
        }
    }
    return best;
}

static void answer(const cw_session *session, int other, double (*read)(const cw_session *)) {
    for (int i = 0; i < PINGPONGS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, other, 0, session->comm, MPI_STATUS_IGNORE);
        double mine = read(session);
        MPI_Send(&mine, 1, MPI_DOUBLE, other, 0, session->comm);
    }
}

static void add_point(cw_session *session, point one) {
    int at = session->points++ % CW_CLOCK_POINTS;
    session->own[at] = one.own - session->origin;
    session->difference[at] = one.difference;
    double width = fmax(one.roundtrip, LEAST_ROUNDTRIP_SECONDS);
    session->weight[at] = 1 / (width * width);
}

/* The line of this process to global time, from its points and the line of the process above. */
static cw_line along_the_tree(const cw_session *session, cw_line above, double above_origin) {
    int count = session->points < CW_CLOCK_POINTS ? session->points : CW_CLOCK_POINTS;
    cw_line own = cw_fit_line(session->own, session->difference, session->weight, count);
    return cw_after(above, above_origin, own, session->origin);
}

/* One more point for every process, in ceil(log2 P) rounds: in each, as many learn as know. */
static void synchronise_once(cw_session *session) {
    int rank = session->rank;
    for (int known = 1; known < session->procs; known *= 2) {
        if (rank < known && rank + known < session->procs) {
            double line[] = {session->to_global.at_origin, session->to_global.slope, session->origin};
            answer(session, rank + known, cw_clock_own);
            MPI_Send(line, 3, MPI_DOUBLE, rank + known, 0, session->comm);
        } else if (rank >= known && rank < 2 * known) {
            double above[3];
            add_point(session, ask(session, rank - known, cw_clock_own));
            MPI_Recv(above, 3, MPI_DOUBLE, rank - known, 0, session->comm, MPI_STATUS_IGNORE);
            session->to_global = along_the_tree(session, (cw_line){above[0], above[1]}, above[2]);
        }
    }
    session->synchronised = cw_clock_own(session);
}

void cw_clock_synchronise(cw_session *session) {
    const struct timespec apart = {0, APART_NANOSECONDS};
    if (isinf(session->synchronised)) {
        session->origin = cw_clock_own(session);
        for (int i = 1; i < FIRST_POINTS; i++) {
            synchronise_once(session);
            nanosleep(&apart, NULL);
        }
    }
    synchronise_once(session);
}

void cw_clock_check(cw_session *session, double *offset_seconds, double *bound_seconds) {
    double worst[2] = {0, 0};
    for (int other = 1; other < session->procs; other++) {
        if (session->rank == 0) {
            answer(session, other, cw_clock_seconds);
        } else if (session->rank == other) {
            point left = ask(session, 0, cw_clock_seconds);
            worst[0] = fabs(left.difference);
            worst[1] = fabs(left.difference) + left.roundtrip / 2;
        }
    }
    cw_gather_largest(session, 0, worst, 2);
    cw_tell(session, 0, worst, (int)sizeof worst);
    *offset_seconds = worst[0];
    *bound_seconds = worst[1];
}
