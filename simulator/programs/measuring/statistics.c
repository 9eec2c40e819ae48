#include "statistics.h"

#include <math.h>
#include <stdlib.h>

#define HALF_PI 1.57079632679489661923

/* Abramowitz & Stegun 26.7.3 and 26.7.4: the probability of lying between -t and t, as a finite series in the angle
 * whose tangent is t over the root of the degrees of freedom. */
static double probability_within(double angle, int degrees) {
    double cosine = cos(angle), sum = 0, term = degrees % 2 == 1 ? cosine : 1;
    for (int k = degrees % 2 == 1 ? 3 : 2; k <= degrees; k += 2) {
        sum += term;
        term *= cosine * cosine * (k - 1) / k;
    }
    return degrees % 2 == 1 ? (angle + sin(angle) * sum) / HALF_PI : sin(angle) * sum;
}

double cw_t_quantile(double confidence, int degrees) {
    if (degrees < 1) {
        return INFINITY;
    }
    if (degrees > CW_MAX_DEGREES) {
        degrees = CW_MAX_DEGREES;
    }
    double low = 0, high = HALF_PI;
    for (double middle = high / 2; middle > low && middle < high; middle = (low + high) / 2) {
        if (probability_within(middle, degrees) < confidence) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return sqrt(degrees) * tan(low);
}

void cw_running_add(cw_running *all, double value) {
    double before = value - all->mean;
    all->count++;
    all->mean += before / all->count;
    all->squares += before * (value - all->mean);
}

double cw_standard_error(const cw_running *all) {
    return all->count < 2 ? INFINITY : sqrt(all->squares / (all->count - 1) / all->count);
}

double cw_half_width(const cw_running *all, double confidence) {
    return all->count < 2 ? INFINITY : cw_t_quantile(confidence, all->count - 1) * cw_standard_error(all);
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void cw_sort(double *values, int count) { qsort(values, (size_t)count, sizeof *values, ascending); }

double cw_median(const double *sorted, int count) {
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

int cw_nrep_count(double t1_seconds, double min_latency_seconds, int least, int most) {
    double wanted = fmax(ceil(t1_seconds / min_latency_seconds), least);
    return wanted < most ? (int)wanted : most; /* also when a latency of 0 makes it infinite or no number */
}

cw_line cw_fit_line(const double *x, const double *y, const double *weight, int count) {
    double all = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0, errors = 0;
    for (int i = 0; i < count; i++) {
        all += weight[i];
        mean_x += weight[i] * x[i];
        mean_y += weight[i] * y[i];
    }
    mean_x /= all;
    mean_y /= all;
    for (int i = 0; i < count; i++) {
        xx += weight[i] * (x[i] - mean_x) * (x[i] - mean_x);
        xy += weight[i] * (x[i] - mean_x) * (y[i] - mean_y);
    }
    double slope = xx > 0 ? xy / xx : 0;
    for (int i = 0; i < count; i++) {
        double error = y[i] - mean_y - slope * (x[i] - mean_x);
        errors += weight[i] * error * error;
    }
    if (count < 3 || fabs(slope) <= cw_t_quantile(0.99, count - 2) * sqrt(errors / (count - 2) / xx)) {
        slope = 0;
    }
    return (cw_line){mean_y - slope * mean_x, slope};
}

cw_line cw_compose(cw_line outer, double outer_origin, cw_line inner, double inner_origin) {
    double then = outer.at_origin + outer.slope * (inner_origin + inner.at_origin - outer_origin);
    return (cw_line){inner.at_origin + then, inner.slope + outer.slope + inner.slope * outer.slope};
}
