/* The sum of applications on hardware. */
#include "application.h"

MPI_Op application_sum_make(const application *app) { return (void)app, MPI_SUM; }
