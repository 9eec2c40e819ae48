/* The sum of applications, and the speed of processors, on hardware. */
#include "application.h"

double application_host_speed(const application *app) { return app->rate > 0; }

MPI_Op application_sum_make(const application *app) { return (void)app, MPI_SUM; }
