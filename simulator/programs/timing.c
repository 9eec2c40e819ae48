#include "timing.h"

#include "internal.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each case starts at a multiple of this many seconds, at least as long after the end of the case before; simulated
 * idle time costs nothing. The first starts at 2^14 s: up to 2^15 s all clock values have the same floating-point
 * spacing, so that rounding does not depend on the start. Otherwise near-ties between events, of which a pipeline on
 * shared links has many, would be decided differently from run to run. */
#define STEP_SECONDS 0.125
#define FIRST_START_SECONDS 16384.0

void program_fail(const char *program, const char *what, const char *detail) {
    fprintf(stderr, "%s: %s %s\n", program, what, detail);
    program_abort();
}

void program_allreduce_max(double *values, int count, MPI_Comm comm) {
    int procs, rank;
    MPI_Comm_size(comm, &procs);
    MPI_Comm_rank(comm, &rank);
    for (int distance = 1; distance < procs; distance *= 2) {
        double received[2];
        MPI_Sendrecv(values, count, MPI_DOUBLE, (rank + distance) % procs, 0, received, count, MPI_DOUBLE,
                     (rank - distance + procs) % procs, 0, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) {
            values[i] = fmax(values[i], received[i]);
        }
    }
}

/* The length of the file, and its content; -1 if it cannot be read. */
static long read_file(const char *path, char **text) {
    FILE *file = fopen(path, "rb");
    long length = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0) {
        rewind(file);
        *text = collwise_allocate((size_t)length + 1, MPI_COMM_WORLD);
        length = (long)fread(*text, 1, (size_t)length, file);
    }
    if (file != NULL) {
        fclose(file);
    }
    return length;
}

/* Sends process 0's data to all, down a binary tree. MPI_Bcast would be the library's under test, of which some of
 * SMPI's fail. */
static void share(void *data, size_t bytes) {
    enum { TAG = 2 };
    int rank, procs;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    if (rank > 0) {
        MPI_Recv(data, (int)bytes, MPI_BYTE, (rank - 1) / 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int child = 2 * rank + 1; child <= 2 * rank + 2 && child < procs; child++) {
        MPI_Send(data, (int)bytes, MPI_BYTE, child, TAG, MPI_COMM_WORLD);
    }
}

char *program_read_text(const char *path) {
    int rank;
    long length = 0;
    char *text = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        length = read_file(path, &text);
        length = length < INT_MAX ? length : -1; /* `share` counts bytes in an int */
    }
    share(&length, sizeof length);
    if (length < 0) {
        return NULL;
    }
    if (rank != 0) {
        text = collwise_allocate((size_t)length + 1, MPI_COMM_WORLD);
    }
    share(text, (size_t)length);
    text[length] = '\0';
    return text;
}

MPI_Comm program_communicator_of_first(cached_communicator *cached, int procs) {
    if (procs != cached->procs) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (cached->comm != MPI_COMM_NULL) {
            MPI_Comm_free(&cached->comm);
        }
        MPI_Comm_split(MPI_COMM_WORLD, rank < procs ? 0 : MPI_UNDEFINED, rank, &cached->comm);
        cached->procs = procs;
    }
    return cached->comm;
}

common_start program_common_start(void) {
    int procs, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    common_start start = {rank == 0 ? program_make_barrier(procs) : NULL, FIRST_START_SECONDS};
    share(&start.barrier, sizeof start.barrier);
    return start;
}

void program_start_together(common_start *start) {
    program_simulated_barrier(start);
    start->seconds = fmax(start->seconds, STEP_SECONDS * ceil(MPI_Wtime() / STEP_SECONDS));
    program_busy_wait(start->seconds - MPI_Wtime());
}

void schedule_next_start(common_start *start, double end_seconds) {
    start->seconds = STEP_SECONDS * ceil(end_seconds / STEP_SECONDS + 1);
}
