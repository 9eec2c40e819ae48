/* Collectives of messages around the size from which a table names algorithms that use MPI_Sendrecv, which the MPI
 * library's own do not call: whether each call of two processes runs the table's. Communicators and datatypes are made
 * and freed, so that their handles come again with another meaning. Prints how many calls were as expected. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 4096, FROM_BYTES = 64, ROUNDS = 3 };

static int exchanges, expected, failures;

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
                 MPI_Status *status) {
    exchanges++;
    return PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from,
                         receive_tag, comm, status);
}

static void check(const char *what, int bytes) {
    int is_ours = exchanges > 0, should_be = bytes >= FROM_BYTES;
    expected += is_ours == should_be;
    if (is_ours != should_be) {
        failures++;
        printf("%s of %d bytes ran %s\n", what, bytes, is_ours ? "the table's algorithm" : "MPI's own");
    }
    exchanges = 0;
}

static void call_all(int count, MPI_Comm comm) {
    static double sent[ROOM], received[ROOM];
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_FLOAT, MPI_CHAR};
    for (int i = 0; i < 3; i++) {
        int bytes;
        MPI_Type_size(types[i], &bytes);
        if (types[i] != MPI_CHAR) {
            MPI_Allreduce(sent, received, count, types[i], MPI_SUM, comm);
            check("allreduce", count * bytes);
        }
        MPI_Bcast(sent, count, types[i], 0, comm);
        check("bcast", count * bytes);
    }
    for (int each = 1; each <= 16; each *= 4) {
        MPI_Datatype made;
        MPI_Type_contiguous(each, MPI_INT, &made);
        MPI_Type_commit(&made);
        MPI_Bcast(sent, count, made, 0, comm);
        check("bcast of a derived type", count * each * (int)sizeof(int));
        MPI_Type_free(&made);
    }
}

int main(int argc, char **argv) {
    static const int counts[] = {1, 7, 8, 15, 16, 17, 1, 100, 0, 63, 64};
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm other;
        MPI_Comm_split(MPI_COMM_WORLD, round % 2 == 0 ? 0 : rank, 0, &other);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            call_all(counts[i], MPI_COMM_WORLD);
            if (round % 2 == 0) {
                call_all(counts[i], other);
            } else {
                MPI_Bcast((char[ROOM]){0}, counts[i], MPI_DOUBLE, 0, other); /* of one process */
                exchanges = 0;
            }
        }
        MPI_Comm_free(&other);
    }
    if (rank == 0 && failures == 0) {
        printf("ok %d\n", expected);
    }
    MPI_Finalize();
    return failures > 0;
}
