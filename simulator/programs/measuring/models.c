/* Estimates of point-to-point models from roundtrips and one-to-two experiments, and their predictions. */
#include "collwise_models.h"
#include "session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { READY = 7, MESSAGE };
/* The bytes of an empty message: one of no bytes may be sent in another way. */
enum { EMPTY = 1 };

/* --- Experiments ------------------------------------------------------------------------------------------------- */

/* Process `from` sends to `to[0]`, then to `to[1]` if there is one, and takes their replies in the opposite order. */
typedef struct {
    const cw_session *session;
    int from, partners, to[2], bytes, reply_bytes;
    char *out, *in; /* `in` has room for two messages */
    MPI_Request incoming[2];
} exchange;

/* All receives are posted, and the partners there, before the first message leaves: processes leave a barrier a
 * message's time apart, which would count as the partner's. */
static void meet(void *context) {
    exchange *one = context;
    MPI_Comm comm = one->session->comm;
    int rank = one->session->rank, leads = rank == one->from;
    for (int i = 0; i < one->partners; i++) {
        if (leads) {
            MPI_Irecv(one->in + i * one->reply_bytes, one->reply_bytes, MPI_BYTE, one->to[i], MESSAGE, comm,
                      &one->incoming[i]);
        } else if (rank == one->to[i]) {
            MPI_Irecv(one->in, one->bytes, MPI_BYTE, one->from, MESSAGE, comm, &one->incoming[0]);
            MPI_Send(NULL, 0, MPI_BYTE, one->from, READY, comm);
        }
    }
    for (int i = 0; leads && i < one->partners; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, one->to[i], READY, comm, MPI_STATUS_IGNORE);
    }
}

static void make_exchange(void *context) {
    exchange *one = context;
    MPI_Comm comm = one->session->comm;
    int rank = one->session->rank, leads = rank == one->from;
    for (int i = 0; i < one->partners; i++) {
        if (leads) {
            MPI_Send(one->out, one->bytes, MPI_BYTE, one->to[i], MESSAGE, comm);
        } else if (rank == one->to[i]) {
            MPI_Wait(&one->incoming[0], MPI_STATUS_IGNORE);
            MPI_Send(one->out, one->reply_bytes, MPI_BYTE, one->from, MESSAGE, comm);
        }
    }
    for (int i = one->partners - 1; leads && i >= 0; i--) {
        MPI_Wait(&one->incoming[i], MPI_STATUS_IGNORE);
    }
}

/* Whether the root's times are as precise as the method wants them, or as many as it allows. */
static int is_enough(const cw_running *times, const cw_method *method, double elapsed) {
    int over = method->limit_seconds > 0 && elapsed > method->limit_seconds;
    int precise = cw_half_width(times, method->confidence) < method->relative_error * times->mean;
    return times->count >= method->max_repetitions || (times->count > 0 && over) ||
           (times->count >= method->min_repetitions && precise);
}

static cw_status time_exchange(cw_session *session, exchange *one, const cw_method *method, cw_result *result) {
    int most = one->bytes > one->reply_bytes ? one->bytes : one->reply_bytes, leads = session->rank == one->from;
    memset(result, 0, sizeof *result);
    one->session = session;
    one->out = calloc((size_t)most + 1, 1);
    one->in = calloc(2 * (size_t)most + 1, 1);
    int made = one->out != NULL && one->in != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, session->comm);
    result->status = cw_objection(method) != NULL ? CW_BAD_METHOD : made ? CW_OK : CW_OUT_OF_MEMORY;
    cw_running times = {0};
    double started = cw_clock_own(session);
    for (int warming = method->warmup, ended = result->status != CW_OK; !ended; warming -= warming > 0) {
        meet(one);
        double begin = cw_clock_own(session);
        make_exchange(one);
        double end = cw_clock_own(session), seconds = end - begin;
        if (leads && warming <= 0) {
            result->least = times.count == 0 ? seconds : fmin(result->least, seconds);
            result->greatest = fmax(result->greatest, seconds);
            cw_running_add(&times, seconds);
            ended = is_enough(&times, method, end - started);
        }
        cw_broadcast(session, one->from, &ended, (int)sizeof ended);
    }
    free(one->out);
    free(one->in);
    if (leads) {
        result->mean = times.mean;
        result->half_width = cw_half_width(&times, method->confidence);
        result->repetitions = times.count;
        result->precise =
            times.count >= method->min_repetitions && result->half_width < method->relative_error * times.mean;
    }
    cw_broadcast(session, one->from, result, (int)sizeof *result);
    return result->status;
}

cw_status cw_roundtrip(cw_session *session, int first, int second, int bytes, int reply_bytes, const cw_method *method,
                       cw_result *result) {
    exchange one = {.from = first, .partners = 1, .to = {second}, .bytes = bytes, .reply_bytes = reply_bytes};
    return time_exchange(session, &one, method, result);
}

/* The mean seconds of an experiment, on every process. */
static cw_status mean_of(cw_session *session, exchange one, const cw_method *method, double *seconds) {
    cw_result result;
    cw_status status = time_exchange(session, &one, method, &result);
    *seconds = result.mean;
    return status;
}

/* --- Estimates --------------------------------------------------------------------------------------------------- */

static double *table_of(int procs) { return calloc((size_t)procs * (size_t)procs, sizeof(double)); }

cw_status cw_hockney_estimate(cw_session *session, int bytes, const cw_method *method, cw_hockney *found) {
    int n = session->procs;
    *found = (cw_hockney){n, table_of(n), table_of(n)};
    if (bytes <= EMPTY) {
        return CW_BAD_METHOD;
    }
    int made = found->alpha != NULL && found->beta != NULL, everywhere;
    MPI_Allreduce(&made, &everywhere, 1, MPI_INT, MPI_MIN, session->comm);
    if (!everywhere) {
        return CW_OUT_OF_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            double seconds[2];
            for (int large = 0; large < 2; large++) {
                int size = large ? bytes : EMPTY;
                exchange one = {.from = i, .partners = 1, .to = {j}, .bytes = size, .reply_bytes = size};
                cw_status status = mean_of(session, one, method, &seconds[large]);
                if (status != CW_OK) {
                    return status;
                }
            }
            double beta = (seconds[1] - seconds[0]) / (2.0 * (bytes - EMPTY));
            found->beta[i * n + j] = found->beta[j * n + i] = beta;
            found->alpha[i * n + j] = found->alpha[j * n + i] = seconds[0] / 2 - EMPTY * beta;
        }
    }
    return CW_OK;
}

/* D(m) = 2 C_i + (m + e) t_i, (4.8): by how much longer process i takes for two messages of m bytes with empty replies
 * of e than for one to the slower partner, which is served last, as (4.4) and (4.7) have it. */
static cw_status second_message(cw_session *session, const cw_hockney *pairs, const int triplet[3], int bytes,
                                const cw_method *method, double *seconds) {
    int i = triplet[0], j = triplet[1], k = triplet[2];
    if (cw_hockney_message(pairs, i, j, bytes) > cw_hockney_message(pairs, i, k, bytes)) {
        j = triplet[2];
        k = triplet[1];
    }
    exchange both = {.from = i, .partners = 2, .to = {j, k}, .bytes = bytes, .reply_bytes = EMPTY};
    cw_status status = mean_of(session, both, method, seconds);
    *seconds -= cw_hockney_message(pairs, i, k, bytes) + cw_hockney_message(pairs, i, k, EMPTY);
    return status;
}

cw_status cw_lmo_estimate(cw_session *session, int bytes, const cw_method *method, cw_lmo *found) {
    int n = session->procs;
    *found =
        (cw_lmo){n, calloc((size_t)n, sizeof(double)), calloc((size_t)n, sizeof(double)), table_of(n), table_of(n)};
    int made = found->constant != NULL && found->per_byte != NULL && found->latency != NULL && found->network != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, session->comm);
    if (!made || n < 3) {
        return made ? CW_BAD_METHOD : CW_OUT_OF_MEMORY;
    }
    cw_hockney pairs;
    cw_status status = cw_hockney_estimate(session, bytes, method, &pairs);
    for (int i = 0; i < n && status == CW_OK; i++) {
        for (int j = 0; j < n; j++) {
            for (int k = j + 1; k < n && status == CW_OK; k++) {
                if (i != j && i != k) {
                    int triplet[3] = {i, j, k};
                    double empty, large;
                    status = second_message(session, &pairs, triplet, EMPTY, method, &empty);
                    if (status == CW_OK) {
                        status = second_message(session, &pairs, triplet, bytes, method, &large);
                        double per_byte = (large - empty) / (bytes - EMPTY);
                        found->per_byte[i] += per_byte;
                        found->constant[i] += empty / 2 - EMPTY * per_byte;
                    }
                }
            }
        }
        found->constant[i] /= (n - 1) * (n - 2) / 2.0;
        found->per_byte[i] /= (n - 1) * (n - 2) / 2.0;
    }
    for (int i = 0; i < n && status == CW_OK; i++) {
        for (int j = 0; j < n; j++) {
            if (i != j) {
                int at = i * n + j;
                found->latency[at] = pairs.alpha[at] - found->constant[i] - found->constant[j];
                found->network[at] = pairs.beta[at] - found->per_byte[i] - found->per_byte[j];
            }
        }
    }
    cw_hockney_free(&pairs);
    return status;
}

/* --- Predictions ------------------------------------------------------------------------------------------------- */

/* A message's seconds, and those of them that occupy the process which sends or receives several. */
typedef struct {
    double message, occupied;
} cost;

typedef cost (*cost_of)(const void *model, int parent, int child, double bytes);

static cost hockney_cost(const void *model, int parent, int child, double bytes) {
    const cw_hockney *pairs = model;
    int at = parent * pairs->procs + child;
    double seconds = pairs->alpha[at] + bytes * pairs->beta[at];
    return (cost){seconds, seconds};
}

static cost lmo_cost(const void *model, int parent, int child, double bytes) {
    const cw_lmo *lmo = model;
    int at = parent * lmo->procs + child;
    double own = lmo->constant[parent] + bytes * lmo->per_byte[parent];
    double other = lmo->constant[child] + bytes * lmo->per_byte[child];
    return (cost){own + lmo->latency[at] + bytes * lmo->network[at] + other, own};
}

static double linear(cost_of of, const void *model, int procs, int root, double bytes) {
    double occupied = 0, after = 0;
    for (int i = 0; i < procs; i++) {
        if (i != root) {
            cost one = of(model, root, i, bytes);
            occupied += one.occupied;
            after = fmax(after, one.message - one.occupied);
        }
    }
    return occupied + after;
}

/* The subtree of `size` ranks from `first` on, (5.1): the largest subtree first. */
static double subtree(cost_of of, const void *model, int procs, int root, double bytes, int first, int size) {
    double done = 0, occupied = 0;
    int power = 1;
    while (2 * power < size) {
        power *= 2;
    }
    for (; power >= 1 && size > 1; power /= 2) {
        int blocks = power < size - power ? power : size - power;
        cost one = of(model, (root + first) % procs, (root + first + power) % procs, blocks * bytes);
        double below = subtree(of, model, procs, root, bytes, first + power, blocks);
        done = fmax(done, occupied + one.message + below);
        occupied += one.occupied;
    }
    return done;
}

double cw_hockney_message(const cw_hockney *model, int sender, int receiver, double bytes) {
    return hockney_cost(model, sender, receiver, bytes).message;
}

double cw_hockney_linear(const cw_hockney *model, int root, double bytes) {
    return linear(hockney_cost, model, model->procs, root, bytes);
}

double cw_hockney_binomial(const cw_hockney *model, int root, double bytes) {
    return subtree(hockney_cost, model, model->procs, root, bytes, 0, model->procs);
}

double cw_lmo_message(const cw_lmo *model, int sender, int receiver, double bytes) {
    return lmo_cost(model, sender, receiver, bytes).message;
}

double cw_lmo_linear(const cw_lmo *model, int root, double bytes) {
    return linear(lmo_cost, model, model->procs, root, bytes);
}

double cw_lmo_binomial(const cw_lmo *model, int root, double bytes) {
    return subtree(lmo_cost, model, model->procs, root, bytes, 0, model->procs);
}

int cw_hockney_prefers_binomial(const cw_hockney *model, int root, double bytes) {
    return cw_hockney_binomial(model, root, bytes) < cw_hockney_linear(model, root, bytes);
}

int cw_lmo_prefers_binomial(const cw_lmo *model, int root, double bytes) {
    return cw_lmo_binomial(model, root, bytes) < cw_lmo_linear(model, root, bytes);
}

/* --- Files ------------------------------------------------------------------------------------------------------- */

static void write_rows(FILE *file, const double *values, int rows, int columns) {
    for (int i = 0; i < rows * columns; i++) {
        fprintf(file, "%.17g%c", values[i], i % columns == columns - 1 ? '\n' : ' ');
    }
}

/* Makes room as the numbers come: the file may have fewer than its head says. */
static int read_rows(FILE *file, double **values, int count) {
    size_t room = 0;
    for (size_t i = 0; i < (size_t)count; i++) {
        if (i == room) {
            room = 2 * room + 64;
            double *longer = realloc(*values, room * sizeof *longer);
            if (longer == NULL) {
                return -1;
            }
            *values = longer;
        }
        if (fscanf(file, "%lf", &(*values)[i]) != 1 || !isfinite((*values)[i])) {
            return -1;
        }
    }
    return 0;
}

/* The number of processes of the model of that name; 0 if the file begins otherwise. */
static int read_head(FILE *file, const char *name) {
    enum { MAX_PROCS = 32768 }; /* its square is the largest that an int holds */
    char word[16];
    int procs;
    int right = fscanf(file, "%15s %d", word, &procs) == 2 && strcmp(word, name) == 0;
    return right && procs >= 2 && procs <= MAX_PROCS ? procs : 0;
}

int cw_hockney_save(const cw_hockney *model, FILE *file) {
    int n = model->procs;
    fprintf(file, "hockney %d\n", n);
    write_rows(file, model->alpha, n, n);
    write_rows(file, model->beta, n, n);
    return ferror(file) ? -1 : 0;
}

int cw_hockney_load(cw_hockney *model, FILE *file) {
    int n = read_head(file, "hockney");
    *model = (cw_hockney){.procs = n};
    return n == 0 || read_rows(file, &model->alpha, n * n) || read_rows(file, &model->beta, n * n) ? -1 : 0;
}

int cw_lmo_save(const cw_lmo *model, FILE *file) {
    int n = model->procs;
    fprintf(file, "lmo %d\n", n);
    write_rows(file, model->constant, 1, n);
    write_rows(file, model->per_byte, 1, n);
    write_rows(file, model->latency, n, n);
    write_rows(file, model->network, n, n);
    return ferror(file) ? -1 : 0;
}

int cw_lmo_load(cw_lmo *model, FILE *file) {
    int n = read_head(file, "lmo");
    *model = (cw_lmo){.procs = n};
    return n == 0 || read_rows(file, &model->constant, n) || read_rows(file, &model->per_byte, n) ||
                   read_rows(file, &model->latency, n * n) || read_rows(file, &model->network, n * n)
               ? -1
               : 0;
}

void cw_hockney_free(cw_hockney *model) {
    free(model->alpha);
    free(model->beta);
}

void cw_lmo_free(cw_lmo *model) {
    free(model->constant);
    free(model->per_byte);
    free(model->latency);
    free(model->network);
}
