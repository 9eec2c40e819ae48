/* The statistics of the measuring library, which need no MPI. */
#ifndef COLLWISE_MEASURING_STATISTICS_H
#define COLLWISE_MEASURING_STATISTICS_H

/* Above this number of degrees of freedom its quantile is used, which is larger by less than 0.5 %. */
#define CW_MAX_DEGREES 1000

/* The quantile t of Student's distribution. A value lies between -t and t with probability `confidence` (0 to 1,
 * both excluded). Infinite for no degree of freedom. */
double cw_t_quantile(double confidence, int degrees);

/* Mean and spread of values that are added one after another; begins as zeros. */
typedef struct {
    int count;
    double mean;
    double squares; /* the sum of the squared differences from the mean */
} cw_running;

void cw_running_add(cw_running *all, double value);

/* The standard error of the mean; infinite for fewer than two values. */
double cw_standard_error(const cw_running *all);

/* The half-width of the mean's confidence interval, by Student's t; infinite for fewer than two values. */
double cw_half_width(const cw_running *all, double confidence);

/* The median of values in ascending order, of which there is at least one. */
double cw_median(const double *ascending, int count);
void cw_sort(double *values, int count);

/* The number of repetitions by Hunold & Carpen-Amarie 2018, "NREP problem": the larger of t1 / l, rounded up, and
 * K = `least`; at most `most`. */
int cw_nrep_count(double t1_seconds, double min_latency_seconds, int least, int most);

/* y = at_origin + slope * x. */
typedef struct {
    double at_origin, slope;
} cw_line;

/* The weighted least-squares line through the points. It is the mean, with slope 0, unless the slope is outside of its
 * 99 % interval around zero. */
cw_line cw_fit_line(const double *x, const double *y, const double *weight, int count);

/* The composition of two maps of clocks, first `inner`, then `outer`. A map adds its line's value to a reading; the
 * lines count from `inner_origin` and `outer_origin`, the result's from `inner_origin`. */
cw_line cw_compose(cw_line outer, double outer_origin, cw_line inner, double inner_origin);

#endif
