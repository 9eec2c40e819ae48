/* Statistics of the measuring library against printed tables and closed forms. */
#include "statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void expect(const char *what, double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * fmax(1, fabs(wanted))) && found != wanted) {
        fprintf(stderr, "%s: %.17g, expected %.17g\n", what, found, wanted);
        failures++;
    }
}

/* Closed forms: one degree of freedom is Cauchy's distribution, two has a root; the others are from printed tables. */
static void quantiles(void) {
    for (int tenths = 1; tenths < 10; tenths++) {
        double confidence = tenths / 10.0, half = confidence / 2, p = 0.5 + half;
        expect("1 degree", cw_t_quantile(confidence, 1), tan(3.14159265358979323846 * half), 1e-12);
        expect("2 degrees", cw_t_quantile(confidence, 2), 2 * half / sqrt(2 * p * (1 - p)), 1e-12);
    }
    expect("9 degrees", cw_t_quantile(0.95, 9), 2.262, 5e-4);
    expect("4 degrees", cw_t_quantile(0.99, 4), 4.604, 5e-4);
    expect("120 degrees", cw_t_quantile(0.95, 120), 1.980, 5e-4);
    expect("many degrees", cw_t_quantile(0.95, 1000000), cw_t_quantile(0.95, CW_MAX_DEGREES), 0);
    expect("none", cw_t_quantile(0.95, 0), INFINITY, 0);
}

static void series(void) {
    const double values[] = {4, 1, 3, 2};
    double sorted[] = {4, 1, 3, 2};
    cw_running all = {0, 0, 0};
    expect("no interval", cw_half_width(&all, 0.95), INFINITY, 0);
    for (int i = 0; i < 4; i++) {
        cw_running_add(&all, values[i]);
    }
    cw_sort(sorted, 4);
    expect("mean", all.mean, 2.5, 1e-15);
    expect("standard error", cw_standard_error(&all), sqrt(5.0 / 3 / 4), 1e-15);
    expect("half-width", cw_half_width(&all, 0.95), 3.182446 * sqrt(5.0 / 3 / 4), 1e-6);
    expect("median of 4", cw_median(sorted, 4), 2.5, 0);
    expect("median of 3", cw_median(sorted, 3), 2, 0);
    expect("least", sorted[0], 1, 0);
}

static void nrep(void) {
    expect("rounded up", cw_nrep_count(1.0, 0.3, 1, 1000), 4, 0);
    expect("exact", cw_nrep_count(1.0, 0.25, 1, 1000), 4, 0);
    expect("at least K", cw_nrep_count(1.0, 0.3, 10, 1000), 10, 0);
    expect("larger than t1", cw_nrep_count(1.0, 5.0, 1, 1000), 1, 0);
    expect("bounded", cw_nrep_count(1.0, 0.0, 1, 1000), 1000, 0);
    expect("no t1", cw_nrep_count(-1.0, 0.5, 5, 1000), 5, 0);
}

/* A drift shows when it stands out of the noise, and the heavier points count for more. */
static void lines(void) {
    enum { POINTS = 20 };
    double x[POINTS], steep[POINTS], noise[POINTS], weight[POINTS];
    for (int i = 0; i < POINTS; i++) {
        x[i] = i;
        noise[i] = i % 2 == 0 ? 1e-6 : -1e-6;
        steep[i] = 5 + 1e-3 * i + noise[i];
        weight[i] = 1;
    }
    cw_line found = cw_fit_line(x, steep, weight, POINTS);
    expect("slope", found.slope, 1e-3, 1e-7);
    expect("at origin", found.at_origin, 5, 1e-6);
    found = cw_fit_line(x, noise, weight, POINTS);
    expect("no slope", found.slope, 0, 0);
    expect("level", found.at_origin, 0, 1e-12);
    steep[3] = 100;
    weight[3] = 1e-12;
    expect("light point", cw_fit_line(x, steep, weight, POINTS).slope, 1e-3, 1e-7);
    found = cw_fit_line(x, steep, weight, 1);
    expect("one point", found.slope, 0, 0);
    expect("one point", found.at_origin, steep[0], 1e-15);
}

/* Two clocks ahead by 10 s and 100 s that gain 1 % and 2 %. */
static void composition(void) {
    const cw_line inner = {10, 0.01}, outer = {100, 0.02};
    const double inner_origin = 7, outer_origin = 15;
    cw_line both = cw_compose(outer, outer_origin, inner, inner_origin);
    for (double own = 0; own < 50; own += 12.5) {
        double middle = own + inner.at_origin + inner.slope * (own - inner_origin);
        double global = middle + outer.at_origin + outer.slope * (middle - outer_origin);
        expect("composition", own + both.at_origin + both.slope * (own - inner_origin), global, 1e-13);
    }
}

int main(void) {
    quantiles();
    series();
    nrep();
    lines();
    composition();
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
