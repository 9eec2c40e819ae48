#include "method_options.h"

#include "internal.h"
#include "options.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *program_read_work(const char *program, char **argv, method_options *options) {
    enum { MOST = 1000000 };
    const double most_bytes = (double)(1L << 50);
    double error = 0;
    *options = (method_options){.method = cw_usual_method(),
                                .nrep = cw_usual_nrep(),
                                .memory = {COLLWISE_MESSAGE_BUFFER_BYTES, COLLWISE_INTEGER_BUFFER_BYTES}};
    cw_method *method = &options->method;
    const program_option all[] = {
        {.name = "--timing", OPTION_CHOICE, &method->timing, .words = "root|maximum|global"},
        {.name = "--synchronisation", OPTION_CHOICE, &method->synchronisation, .words = "barriers|rounds"},
        {"--nrep", OPTION_NUMBER, &error, 1e-9, 1 - 1e-9, NULL},
        {"--min-repetitions", OPTION_INT, &method->min_repetitions, 1, MOST, NULL},
        {"--max-repetitions", OPTION_INT, &method->max_repetitions, 1, MOST, NULL},
        {"--warmup", OPTION_INT, &method->warmup, 1, MOST, NULL},
        {"--calls", OPTION_INT, &method->calls, 1, MOST, NULL},
        {"--confidence", OPTION_NUMBER, &method->confidence, 0, 1, NULL},
        {"--relative-error", OPTION_NUMBER, &method->relative_error, 0, 1, NULL},
        {"--late-seconds", OPTION_NUMBER, &method->late_seconds, 0, MOST, NULL},
        {"--limit-seconds", OPTION_NUMBER, &method->limit_seconds, 0, MOST, NULL},
        {"--message-buffer", OPTION_LONG, &options->memory.message_bytes, 1, most_bytes, NULL},
        {"--integer-buffer", OPTION_LONG, &options->memory.integer_bytes, 1, most_bytes, NULL},
        {"--samples", OPTION_FLAG, &options->samples, 0, 1, NULL},
        {0}};
    if (argv[1] == NULL) {
        program_fail(program, "needs", "a file");
    }
    work_line read = program_read_options(all, argv + 2);
    options->by_nrep = error > 0;
    options->nrep.relative_standard_error = options->by_nrep ? error : options->nrep.relative_standard_error;
    options->nrep.least = method->min_repetitions;
    const char *wrong = cw_objection(method);
    if (wrong != NULL) {
        program_work_refuse(&read, "%s", wrong);
    }
    if (!program_work_is_right(&read)) {
        program_print_usage(program, all, &read);
        program_abort();
    }
    char *text = program_read_text(argv[1]);
    if (text == NULL) {
        program_fail(program, "cannot read", argv[1]);
    }
    return text;
}

void program_print_number(const char *name, double value) {
    if (isfinite(value)) {
        printf(", \"%s\": %.17g", name, value);
    } else {
        printf(", \"%s\": null", name);
    }
}

void program_print_samples(const double *samples, size_t count) {
    printf(", \"samples\": [");
    for (size_t i = 0; i < count; i++) {
        printf("%s%.17g", i == 0 ? "" : ", ", samples[i]);
    }
    printf("]");
}

/* Process 0 prints all records, so that lines are never mixed. */
static void send_samples_to_printer(int root, MPI_Comm comm, cw_result *result) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (root != 0 && rank == root) {
        MPI_Send(result->samples, result->repetitions, MPI_DOUBLE, 0, 0, comm);
    } else if (root != 0 && rank == 0) {
        result->samples = collwise_allocate((size_t)result->repetitions * sizeof(double), comm);
        MPI_Recv(result->samples, result->repetitions, MPI_DOUBLE, root, 0, comm, MPI_STATUS_IGNORE);
    }
}

static void print_error(const cw_result *result) {
    if (result->status == CW_TOO_LATE) {
        printf(", \"error\": \"too many repetitions started late: %d, with %d in time (see --late-seconds)\"",
               result->late_starts, result->repetitions);
    } else {
        printf(", \"error\": \"out of memory for the call or its samples\"");
    }
}

static void print_result(const method_options *options, const cw_result *result, double t1_seconds,
                         const recorded_samples *others) {
    program_print_number("seconds", result->mean);
    program_print_number("median_seconds", result->median);
    program_print_number("least_seconds", result->least);
    program_print_number("greatest_seconds", result->greatest);
    program_print_number("half_width_seconds", result->half_width);
    printf(", \"repetitions\": %d, \"late_starts\": %d, \"precise\": %s", result->repetitions, result->late_starts,
           result->precise ? "true" : "false");
    program_print_number("clock_resolution_seconds", result->clock_resolution);
    program_print_number("clock_tick_seconds", result->clock_tick);
    program_print_number("clock_offset_seconds", result->clock_offset);
    program_print_number("clock_bound_seconds", result->clock_bound);
    program_print_number("barrier_seconds", result->barrier_seconds);
    if (options->by_nrep) {
        program_print_number("nrep_seconds", t1_seconds < 0 ? NAN : t1_seconds);
    }
    if (others->values != NULL) {
        program_print_samples(others->values, others->count);
    } else if (options->samples) {
        program_print_samples(result->samples, (size_t)result->repetitions);
    }
}

void program_report_case(long id, int root, MPI_Comm comm, const method_options *options, cw_result *result,
                         double t1_seconds, const recorded_samples *others) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (options->samples && result->status == CW_OK) {
        send_samples_to_printer(root, comm, result);
    }
    if (rank == 0) {
        printf("{\"id\": %ld", id);
        if (result->status != CW_OK) {
            print_error(result);
        } else {
            print_result(options, result, t1_seconds, others);
        }
        printf("}\n");
    }
}
