#include "method_options.h"

#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index in `names`, which ends in NULL; -1 if it is not there. */
static int choice(const char *const *names, const char *name) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static int read_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static int read_count(const char *text, int least, int *count) {
    double value;
    if (!read_number(text, &value) || value < least || value > 1000000 || value != floor(value)) {
        return 0;
    }
    *count = (int)value;
    return 1;
}

static int read_size(const char *text, size_t *bytes) {
    double value;
    if (!read_number(text, &value) || value < 1 || value > (double)((size_t)1 << 50) || value != floor(value)) {
        return 0;
    }
    *bytes = (size_t)value;
    return 1;
}

/* Whether the option is known and its value valid. */
static int read_option(method_options *options, const char *name, const char *value) {
    static const char *const timings[] = {"root", "maximum", "global", NULL};
    static const char *const synchronisations[] = {"barriers", "rounds", NULL};
    cw_method *method = &options->method;
    if (strcmp(name, "--timing") == 0) {
        int found = choice(timings, value);
        method->timing = found < 0 ? CW_ROOT : (cw_timing)found;
        return found >= 0;
    }
    if (strcmp(name, "--synchronisation") == 0) {
        int found = choice(synchronisations, value);
        method->synchronisation = found < 0 ? CW_BARRIERS : (cw_synchronisation)found;
        return found >= 0;
    }
    if (strcmp(name, "--nrep") == 0) {
        options->by_nrep = 1;
        double *error = &options->nrep.relative_standard_error;
        return read_number(value, error) && *error > 0 && *error < 1;
    }
    if (strcmp(name, "--min-repetitions") == 0) {
        return read_count(value, 1, &method->min_repetitions);
    }
    if (strcmp(name, "--max-repetitions") == 0) {
        return read_count(value, 1, &method->max_repetitions);
    }
    if (strcmp(name, "--warmup") == 0) {
        return read_count(value, 1, &method->warmup);
    }
    if (strcmp(name, "--calls") == 0) {
        return read_count(value, 1, &method->calls);
    }
    if (strcmp(name, "--confidence") == 0) {
        return read_number(value, &method->confidence);
    }
    if (strcmp(name, "--relative-error") == 0) {
        return read_number(value, &method->relative_error);
    }
    if (strcmp(name, "--late-seconds") == 0) {
        return read_number(value, &method->late_seconds);
    }
    if (strcmp(name, "--message-buffer") == 0) {
        return read_size(value, &options->memory.message_bytes);
    }
    if (strcmp(name, "--integer-buffer") == 0) {
        return read_size(value, &options->memory.integer_bytes);
    }
    return strcmp(name, "--limit-seconds") == 0 && read_number(value, &method->limit_seconds);
}

const char *program_method_options(method_options *options, char **words) {
    *options = (method_options){.method = cw_usual_method(),
                                .nrep = cw_usual_nrep(),
                                .memory = {COLLWISE_MESSAGE_BUFFER_BYTES, COLLWISE_INTEGER_BUFFER_BYTES}};
    for (; *words != NULL; words++) {
        if (strcmp(words[0], "--samples") == 0) {
            options->samples = 1;
        } else if (words[1] == NULL || !read_option(options, words[0], words[1])) {
            return words[0];
        } else {
            words++;
        }
    }
    options->nrep.least = options->method.min_repetitions;
    return cw_objection(&options->method);
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
