/* Repeats an operation until the mean is precise enough. Only the root decides, so that all processes agree. */
#include "session.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Rounds: the first slack, the time between announcement and start, and the bounds within which it adapts. */
#define FIRST_SLACK_SECONDS 1e-3
#define MIN_SLACK_SECONDS 2e-5
#define MAX_SLACK_SECONDS 1.0
/* Fewer late starts than LATE_AT_LEAST never end a measurement. */
enum { LATE_AT_LEAST = 10, BARRIERS_ALONE = 10, MAX_REPETITIONS = 1000000 };

/* The root's record of a series of repetitions. */
typedef struct {
    cw_running times;
    double *samples;
    int room, late;
    double started; /* on the root's own clock */
    cw_status status;
    int quantile_of;
    double quantile;
} series;

/* Whether the series may end; called on the root only. */
typedef int (*stop_rule)(series *all, const void *wanted);

typedef enum { STOP, SYNCHRONISE, REPEAT } action;

/* The message that the root broadcasts before each repetition. The times are for rounds, on the global clock. */
typedef struct {
    action next;
    double announced, start;
} instruction;

/* The values that processes report to the root after each repetition; the root gets the maximum of each. */
enum { LATE, OWN_TIME, END, MINUS_BEGIN, DELAY, REPORTED };

cw_method cw_usual_method(void) {
    return (cw_method){.timing = CW_MAXIMUM,
                       .synchronisation = CW_BARRIERS,
                       .warmup = 1,
                       .calls = 1,
                       .min_repetitions = 5,
                       .max_repetitions = 100,
                       .confidence = 0.95,
                       .relative_error = 0.025,
                       .limit_seconds = 5,
                       .late_seconds = 1e-5,
                       .late_share = 0.5,
                       .clock_age_seconds = 0.5};
}

cw_nrep cw_usual_nrep(void) { return (cw_nrep){0.01, 5, 5, 0.05, 5}; }

const char *cw_objection(const cw_method *method) {
    if (method->min_repetitions < 1 || method->max_repetitions < method->min_repetitions ||
        method->max_repetitions > MAX_REPETITIONS) {
        return "repetitions must be from 1 to 1000000, the least not above the most";
    }
    if (method->calls < 1 || method->calls > MAX_REPETITIONS) {
        return "calls must be from 1 to 1000000";
    }
    if (!(method->confidence > 0 && method->confidence < 1)) {
        return "confidence must lie between 0 and 1";
    }
    if (!(method->relative_error > 0 && method->relative_error < 1)) {
        return "relative error must lie between 0 and 1";
    }
    if (!(method->late_share > 0 && method->late_share <= 1)) {
        return "share of late starts must be above 0 and at most 1";
    }
    if (method->warmup < 0 || !(method->limit_seconds >= 0) || !(method->late_seconds >= 0) ||
        !(method->clock_age_seconds > 0)) {
        return "warm-up and times must not be negative";
    }
    return NULL;
}

static int needs_global_clock(const cw_method *method) {
    return method->timing == CW_GLOBAL || method->synchronisation == CW_ROUNDS;
}

/* --- On the root ------------------------------------------------------------------------------------------------- */

static void add_sample(series *all, double seconds) {
    if (all->times.count == all->room) {
        int room = all->room == 0 ? 64 : 2 * all->room;
        double *samples = realloc(all->samples, (size_t)room * sizeof *samples);
        if (samples == NULL) {
            all->status = CW_OUT_OF_MEMORY;
            return;
        }
        all->samples = samples;
        all->room = room;
    }
    all->samples[all->times.count] = seconds;
    cw_running_add(&all->times, seconds);
}

/* The slack becomes twice the time of the slowest announcement: at once if that is longer, gradually if not. */
static void adapt_slack(cw_session *session, double delay) {
    double wanted = 2 * delay, slack = session->slack_seconds;
    slack = wanted > slack ? wanted : 0.8 * slack + 0.2 * wanted;
    session->slack_seconds = fmin(fmax(slack, MIN_SLACK_SECONDS), MAX_SLACK_SECONDS);
}

static instruction decide(const cw_session *session, series *all, const cw_method *method, int warming,
                          stop_rule enough, const void *wanted) {
    double now = cw_clock_own(session);
    instruction given = {REPEAT, 0, 0};
    if (all->late >= LATE_AT_LEAST && all->late > method->late_share * (all->late + all->times.count)) {
        all->status = CW_TOO_LATE;
    }
    int over = method->limit_seconds > 0 && now - all->started >= method->limit_seconds && all->times.count > 0;
    if (all->status != CW_OK || (!warming && (over || enough(all, wanted)))) {
        given.next = STOP;
    } else if (needs_global_clock(method) && cw_clock_age(session) > method->clock_age_seconds) {
        given.next = SYNCHRONISE;
    } else if (method->synchronisation == CW_ROUNDS) {
        given.announced = cw_clock_at(session, now);
        given.start = given.announced + session->slack_seconds;
    }
    return given;
}

/* --- On every process -------------------------------------------------------------------------------------------- */

/* Waits until the start and returns the start skew. Other processes of this core may run meanwhile. */
static double wait_until(const cw_session *session, double start) {
    double now = cw_clock_seconds(session);
    while (now < start) {
        sched_yield();
        now = cw_clock_seconds(session);
    }
    return now - start;
}

/* Makes one repetition. Returns, on the root, its time by the method; `reports` are the maxima over all processes. */
static double repeat(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                     const instruction *given, double reports[REPORTED]) {
    int by_rounds = method->synchronisation == CW_ROUNDS;
    reports[LATE] = reports[DELAY] = 0;
    if (by_rounds) {
        reports[DELAY] = cw_clock_seconds(session) - given->announced;
        reports[LATE] = wait_until(session, given->start) > method->late_seconds;
    } else {
        cw_barrier(session);
        cw_barrier(session);
    }
    double begin = cw_clock_own(session);
    for (int i = 0; i < method->calls; i++) {
        operation(context);
    }
    if (method->timing == CW_ROOT) {
        cw_barrier(session);
    }
    double end = cw_clock_own(session);
    reports[OWN_TIME] = end - begin;
    reports[END] = cw_clock_at(session, end);
    reports[MINUS_BEGIN] = -cw_clock_at(session, begin);
    cw_reduce_maximum(session, root, reports, REPORTED);
    switch (method->timing) {
    case CW_ROOT:
        return (end - begin) / method->calls;
    case CW_MAXIMUM:
        return reports[OWN_TIME] / method->calls;
    default:
        return (reports[END] - (by_rounds ? given->start : -reports[MINUS_BEGIN])) / method->calls;
    }
}

/* Repeats until the rule or a limit ends the series. `all` is complete on the root; its status is set
 * everywhere. */
static void run_series(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                       stop_rule enough, const void *wanted, series *all) {
    memset(all, 0, sizeof *all);
    all->started = cw_clock_own(session);
    if (session->slack_seconds == 0) {
        session->slack_seconds = FIRST_SLACK_SECONDS;
    }
    instruction given;
    for (int warming = method->warmup;;) {
        if (session->rank == root) {
            given = decide(session, all, method, warming > 0, enough, wanted);
        }
        cw_broadcast(session, root, &given, (int)sizeof given);
        if (given.next == STOP) {
            break;
        }
        if (given.next == SYNCHRONISE) {
            cw_clock_synchronise(session);
            continue;
        }
        double reports[REPORTED];
        double seconds = repeat(session, root, operation, context, method, &given, reports);
        if (session->rank == root) {
            if (method->synchronisation == CW_ROUNDS) {
                adapt_slack(session, reports[DELAY]);
            }
            if (warming <= 0) {
                if (reports[LATE] > 0) {
                    all->late++;
                } else {
                    add_sample(all, seconds);
                }
            }
        }
        warming -= warming > 0;
    }
    cw_broadcast(session, root, &all->status, (int)sizeof all->status);
}

/* --- Rules -------------------------------------------------------------------------------------------------------- */

static int is_precise(series *all, const cw_method *method) {
    int n = all->times.count;
    if (n < 2) {
        return 0;
    }
    int degrees = n - 1 > CW_MAX_DEGREES ? CW_MAX_DEGREES : n - 1;
    if (all->quantile_of != degrees) {
        all->quantile_of = degrees;
        all->quantile = cw_t_quantile(method->confidence, degrees);
    }
    return all->quantile * cw_standard_error(&all->times) < method->relative_error * all->times.mean;
}

static int until_precise(series *all, const void *wanted) {
    const cw_method *method = wanted;
    int n = all->times.count;
    return n >= method->max_repetitions || (n >= method->min_repetitions && is_precise(all, method));
}

static int until_count(series *all, const void *wanted) { return all->times.count >= *(const int *)wanted; }

static int is_steady(const series *all, const cw_nrep *nrep) {
    return all->times.count >= nrep->first_batch &&
           cw_standard_error(&all->times) < nrep->relative_standard_error * all->times.mean;
}

static int until_steady(series *all, const void *wanted) {
    return all->times.count >= MAX_REPETITIONS || is_steady(all, wanted);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

/* The mean time of a barrier on the root's clock, synchronised as for CW_ROOT by barriers. */
static double barrier_alone(const cw_session *session) {
    double sum = 0;
    for (int i = 0; i < BARRIERS_ALONE; i++) {
        cw_barrier(session);
        cw_barrier(session);
        double begin = cw_clock_own(session);
        cw_barrier(session);
        sum += cw_clock_own(session) - begin;
    }
    return sum / BARRIERS_ALONE;
}

/* The root fills in the result and broadcasts it. The samples become the result's. */
static cw_status conclude(cw_session *session, int root, const cw_method *method, series *all, int precise,
                          cw_result *result) {
    int n = all->times.count;
    *result = (cw_result){.status = all->status, .barrier_seconds = NAN, .clock_offset = NAN, .clock_bound = NAN};
    if (session->rank == root && n > 0) {
        double *sorted = malloc((size_t)n * sizeof *sorted);
        if (sorted == NULL) {
            result->status = CW_OUT_OF_MEMORY;
        } else {
            memcpy(sorted, all->samples, (size_t)n * sizeof *sorted);
            cw_sort(sorted, n);
            result->mean = all->times.mean;
            result->median = cw_median(sorted, n);
            result->least = sorted[0];
            result->greatest = sorted[n - 1];
            result->half_width = cw_half_width(&all->times, method->confidence);
            result->precise = precise;
            free(sorted);
        }
    }
    result->repetitions = n;
    result->late_starts = all->late;
    if (method->timing == CW_ROOT) {
        result->barrier_seconds = barrier_alone(session);
    }
    cw_broadcast(session, root, result, (int)sizeof *result);
    result->clock_resolution = session->resolution;
    result->clock_tick = session->tick;
    if (needs_global_clock(method)) {
        cw_clock_check(session, &result->clock_offset, &result->clock_bound);
    }
    result->samples = all->samples;
    return result->status;
}

cw_status cw_measure(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                     cw_result *result) {
    if (cw_objection(method) != NULL) {
        return CW_BAD_METHOD;
    }
    series all;
    run_series(session, root, operation, context, method, until_precise, method, &all);
    return conclude(session, root, method, &all, all.times.count >= method->min_repetitions && is_precise(&all, method),
                    result);
}

void cw_result_free(cw_result *result) {
    free(result->samples);
    result->samples = NULL;
}

cw_status cw_nrep_seconds(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                          const cw_nrep *nrep, double *t1_seconds) {
    if (cw_objection(method) != NULL) {
        return CW_BAD_METHOD;
    }
    series all;
    run_series(session, root, operation, context, method, until_steady, nrep, &all);
    *t1_seconds = is_steady(&all, nrep) ? all.times.mean * all.times.count : -1;
    cw_broadcast(session, root, t1_seconds, (int)sizeof *t1_seconds);
    free(all.samples);
    return all.status;
}

/* The smallest latency of the batches; on the root. */
static cw_status expected_latency(cw_session *session, int root, cw_operation operation, void *context,
                                  const cw_method *method, const cw_nrep *nrep, double *least) {
    cw_status status = CW_OK;
    *least = INFINITY;
    for (int batch = 0, more = 1; batch < 2 && more && status == CW_OK; batch++) {
        int count = batch == 0 ? nrep->first_batch : nrep->second_batch;
        series all;
        run_series(session, root, operation, context, method, until_count, &count, &all);
        for (int i = 0; i < all.times.count; i++) {
            *least = fmin(*least, all.samples[i]);
        }
        more = cw_standard_error(&all.times) >= nrep->batch_error * all.times.mean;
        cw_broadcast(session, root, &more, (int)sizeof more);
        free(all.samples);
        status = all.status;
    }
    return status;
}

cw_status cw_measure_nrep(cw_session *session, int root, cw_operation operation, void *context, const cw_method *method,
                          const cw_nrep *nrep, double t1_seconds, cw_result *result) {
    if (cw_objection(method) != NULL) {
        return CW_BAD_METHOD;
    }
    double least;
    series all;
    cw_status status = expected_latency(session, root, operation, context, method, nrep, &least);
    if (status != CW_OK) {
        all = (series){.status = status};
        return conclude(session, root, method, &all, 0, result);
    }
    int count = cw_nrep_count(t1_seconds, least, nrep->least, MAX_REPETITIONS);
    run_series(session, root, operation, context, method, until_count, &count, &all);
    return conclude(session, root, method, &all, t1_seconds >= 0 && all.times.count >= count, result);
}
