/* What the measuring library computes from times; needs no MPI. */
#ifndef COLLWISE_MEASURING_STATISTICS_H
#define COLLWISE_MEASURING_STATISTICS_H

/* Above so many degrees of freedom the quantile for this number stands in, which is larger by less than 0.5 %. */
#define CW_MOST_DEGREES 1000

/* The t for which a value of Student's distribution lies between -t and t with probability `confidence` (0 to 1, both
 * excluded). Infinite for no degree of freedom. */
double cw_t_quantile(double confidence, int degrees);

/* Mean and spread of values as they come; begins as zeros. */
typedef struct {
    int count;
    double mean;
    double squares; /* of the differences from the mean, summed */
} cw_running;

void cw_running_add(cw_running *all, double value);

/* Of the mean: infinite for fewer than two values. */
double cw_standard_error(const cw_running *all);

/* Of the mean's confidence interval, by Student's t; infinite for fewer than two values. */
double cw_half_width(const cw_running *all, double confidence);

/* Of values in ascending order; there must be one. */
double cw_median(const double *ascending, int count);
void cw_sort(double *values, int count);

/* Hunold & Carpen-Amarie 2018, "NREP problem": the larger of t1 / l, rounded up, and K = `least`; never above `most`.
 */
int cw_nrep_count(double t1_seconds, double least_latency_seconds, int least, int most);

/* y = at_origin + slope * x. */
typedef struct {
    double at_origin, slope;
} cw_line;

/* The line through points by least squares, each with its weight. It is level, through the mean, unless the slope lies
 * outside of its own 99 % interval around zero. */
cw_line cw_fit_line(const double *x, const double *y, const double *weight, int count);

/* What comes of mapping first by `inner`, then by `outer`: both add a line's value to what they map, which `inner`
 * takes from `inner_origin` and `outer` from `outer_origin` on. The result counts from `inner_origin`. */
cw_line cw_after(cw_line outer, double outer_origin, cw_line inner, double inner_origin);

#endif
