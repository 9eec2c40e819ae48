/* The collectives that measuring itself needs, of point-to-point messages, so that their trees are known. */
#include "session.h"

#include <math.h>
#include <stddef.h>

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
            double received[CW_MAX_VALUES];
            MPI_Recv(received, count, MPI_DOUBLE, (session->rank + distance) % procs, 0, session->comm,
                     MPI_STATUS_IGNORE);
            for (int i = 0; i < count; i++) {
                values[i] = fmax(values[i], received[i]);
            }
        }
    }
}
