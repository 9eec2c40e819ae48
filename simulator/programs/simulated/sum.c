/* The sum of applications, and the speed of processors, in simulation. */
#include "application.h"

#include <simgrid/actor.h>
#include <simgrid/host.h>
#include <stdlib.h>

static void take_time(void *left, void *right, int *count, MPI_Datatype *type) {
    (void)left;
    (void)right;
    int bytes;
    MPI_Type_size(*type, &bytes);
    const char *rate = sg_host_get_property_value(sg_host_self(), "collwise/reduce-seconds-per-byte");
    double seconds = rate == NULL ? 0 : strtod(rate, NULL) * (double)*count * bytes;
    if (seconds > 0) {
        sg_actor_sleep_for(seconds);
    }
}

double application_host_speed(const application *app) { return (void)app, sg_host_get_speed(sg_host_self()); }

MPI_Op application_sum_make(const application *app) {
    MPI_Op sum = MPI_SUM;
    if (app->rate > 0) {
        MPI_Op_create(take_time, 1, &sum);
    }
    return sum;
}
