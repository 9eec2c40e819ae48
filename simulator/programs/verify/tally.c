/* Counting cases, and joining what all processes found into one line of JSON. */
#include "verify.h"

#include <stdio.h>

void verify_start(verify_tally *tally) { *tally = (verify_tally){.first_failed = VERIFY_MAX_CASES}; }

void verify_count(verify_tally *tally, const char *what, verify_outcome outcome, const char *complaint) {
    int index = tally->cases++;
    if (index >= VERIFY_MAX_CASES) {
        fprintf(stderr, "verify: more than %d cases\n", VERIFY_MAX_CASES);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    tally->not_applicable += outcome == VERIFY_NOT_APPLICABLE;
    if (outcome != VERIFY_WRONG) {
        return;
    }
    tally->failed[index] = 1;
    if (tally->first_failed == VERIFY_MAX_CASES) {
        tally->first_failed = index;
        snprintf(tally->first_failure, VERIFY_TEXT, "%.*s: %.*s", VERIFY_TEXT * 2 / 3, what, VERIFY_TEXT / 3 - 8,
                 complaint);
    }
}

void verify_skip(verify_tally *tally, int cases) { tally->cases += cases; }

/* The process that failed first, in the order of cases, tells everybody. */
static void share_first_failure(const verify_tally *tally, char text[VERIFY_TEXT]) {
    struct {
        int first_failed, rank;
    } mine = {.first_failed = tally->first_failed}, first;
    MPI_Comm_rank(MPI_COMM_WORLD, &mine.rank);
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, MPI_COMM_WORLD);
    snprintf(text, VERIFY_TEXT, "%s", tally->first_failure);
    MPI_Bcast(text, VERIFY_TEXT, MPI_CHAR, first.rank, MPI_COMM_WORLD);
}

void verify_report(const verify_tally *tally, const char *collective, const char *algorithm) {
    int failed[VERIFY_MAX_CASES], rank, failures = 0;
    char first_failure[VERIFY_TEXT];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(tally->failed, failed, VERIFY_MAX_CASES, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    share_first_failure(tally, first_failure);
    if (rank != 0) {
        return;
    }
    for (int i = 0; i < VERIFY_MAX_CASES; i++) {
        failures += failed[i];
    }
    const char *quote = failures > 0 ? "\"" : "";
    printf("{\"collective\": \"%s\", \"algorithm\": \"%s\", \"cases\": %d, \"skipped\": %d, "
           "\"failures\": %d, \"first_failure\": %s%s%s}\n",
           collective, algorithm, tally->cases - tally->not_applicable, tally->not_applicable, failures, quote,
           failures > 0 ? first_failure : "null", quote);
    fflush(stdout);
}

void verify_say_started(const char *collective, const char *algorithm, int procs, const char *what) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("{\"collective\": \"%s\", \"algorithm\": \"%s\", \"started\": \"P = %d (%s)\"}\n", collective, algorithm,
               procs, what);
        fflush(stdout);
    }
}
