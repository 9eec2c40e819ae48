#include "application.h"

#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Start ------------------------------------------------------------------------------------------------------- */

void application_start(application *app, int *argc, char ***argv, const program_option *options) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &app->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &app->procs);
    work_line read = program_read_options(options, *argv + 1);
    if (!program_work_is_right(&read)) {
        if (app->rank == 0) {
            program_print_usage(app->name, options, &read);
        }
        MPI_Finalize();
        exit(2);
    }
}

void application_list_call(const application *app, const char *collective, size_t message_bytes, long times) {
    if (app->rank == 0 && times > 0) {
        printf("{\"collective\": \"%s\", \"message_bytes\": %zu, \"calls\": %ld}\n", collective, message_bytes, times);
    }
}

/* --- Times ------------------------------------------------------------------------------------------------------- */

void application_begin(application *app) {
    MPI_Barrier(MPI_COMM_WORLD);
    app->in_collectives = app->computing = app->operations = 0;
    app->start = MPI_Wtime();
}

void application_enter(application *app) { app->entered = MPI_Wtime(); }
void application_leave(application *app) { app->in_collectives += MPI_Wtime() - app->entered; }
void application_compute_begin(application *app) { app->entered = MPI_Wtime(); }

void application_compute_end(application *app, double operations) {
    app->computing += MPI_Wtime() - app->entered;
    app->operations += operations;
}

void application_model(const application *app, double operations, double speed) {
    if (operations > 0) {
        program_busy_wait(operations / (app->rate * speed));
    }
}

void application_end(application *app) { app->seconds = MPI_Wtime() - app->start; }

static void print_results(const application *app, const double *most, double mean, double result, int correct) {
    printf("{\"application\": \"%s\", \"procs\": %d, \"seconds\": %.9g, \"collective_seconds_mean\": %.9g, "
           "\"collective_seconds_max\": %.9g",
           app->name, app->procs, most[0], mean, most[1]);
    if (app->rate == 0) {
        printf(", \"result\": %.15g, \"correct\": %s", result, correct ? "true" : "false");
    }
    if (app->rate == 0 && !COLLWISE_IS_SIMULATED && app->computing > 0) {
        printf(", \"operations_per_second\": %.4g", app->operations / app->computing);
    }
    printf("}\n");
}

int application_finish(application *app, double result, int correct) {
    double own[2] = {app->seconds, app->in_collectives}, most[2], sum;
    if (!app->lists_calls) {
        MPI_Reduce(own, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&own[1], &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Bcast(&correct, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (app->rank == 0) {
            print_results(app, most, sum / app->procs, result, correct);
        }
    }
    MPI_Finalize();
    return app->rate == 0 && !app->lists_calls && !correct;
}

/* --- Memory and reductions, and the processor -------------------------------------------------------------------- */

void *application_allocate(const application *app, size_t bytes) {
    void *memory = app->rate > 0 ? program_allocate_payload(bytes + 1) : calloc(bytes + 1, 1);
    if (memory == NULL) {
        fprintf(stderr, "%s: out of memory for %zu bytes\n", app->name, bytes);
        program_abort();
    }
    return memory;
}

void application_free(const application *app, void *memory) {
    if (app->rate > 0) {
        program_free_payload(memory);
    } else {
        free(memory);
    }
}

void application_sum_free(MPI_Op *sum) {
    if (*sum != MPI_SUM) {
        MPI_Op_free(sum);
    }
}

unsigned application_noise(unsigned i, unsigned j, unsigned most) {
    unsigned mixed = i * 2654435761U + j * 2246822519U + 374761393U;
    mixed = (mixed ^ mixed >> 15) * 2246822519U;
    mixed = (mixed ^ mixed >> 13) * 3266489917U;
    return (mixed ^ mixed >> 16) % most;
}
