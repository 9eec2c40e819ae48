/* Point-to-point models of the processes of a session: measured, written, read, and asked for times.
 *
 *     cw_lmo lmo;
 *     if (cw_lmo_estimate(session, 61440, &method, &lmo) == CW_OK && cw_lmo_prefers_binomial(&lmo, root, bytes)) ...
 *     cw_lmo_free(&lmo);
 *
 * Hockney's model between i and j is alpha_ij + m beta_ij; LMO (O'Flynn 2009, chapter 4) has the processors apart from
 * the network, C_i + L_ij + C_j + m (t_i + 1 / beta_ij + t_j). Times are in seconds, m in bytes. Messages are taken to
 * be sent as the largest measured one is: below the rendezvous threshold, unless a larger size is measured. Tables have
 * the value of i and j at [i * procs + j]. */
#ifndef COLLWISE_MODELS_H
#define COLLWISE_MODELS_H

#include "collwise_measuring.h"

#include <stdio.h>

typedef struct {
    int procs;
    double *alpha, *beta;
} cw_hockney;

typedef struct {
    int procs;
    double *constant, *per_byte; /* C_i and t_i */
    double *latency, *network;   /* L_ij and 1 / beta_ij */
} cw_lmo;

/* The roundtrip of `bytes` there and `reply_bytes` back between two processes, on the clock of `first`. It starts when
 * both are there; the method's repetitions, precision and limit count. All processes get the result, without a median
 * and samples. */
cw_status cw_roundtrip(cw_session *session, int first, int second, int bytes, int reply_bytes, const cw_method *method,
                       cw_result *result);

/* The model of all pairs, the same on every process. It is from roundtrips with one byte and with `bytes`, above 1, one
 * pair after another. CW_BAD_METHOD also for wrong bytes. */
cw_status cw_hockney_estimate(cw_session *session, int bytes, const cw_method *method, cw_hockney *found);

/* LMO by these roundtrips and by one-to-two experiments on all triplets, (4.4) to (4.10): 3 processes at least. */
cw_status cw_lmo_estimate(cw_session *session, int bytes, const cw_method *method, cw_lmo *found);

/* Predictions. Not collective, as everything below. m is each process's block; scatters and gathers are linear, by
 * table 5.2 and (4.1), or binomial, by (5.1) and its like; rank r + root modulo P is the tree's r-th. Gathers are those
 * of messages that are neither so large nor so many that the root's switch port is overrun: (4.2). */
double cw_hockney_message(const cw_hockney *model, int sender, int receiver, double bytes);
double cw_hockney_linear(const cw_hockney *model, int root, double bytes);
double cw_hockney_binomial(const cw_hockney *model, int root, double bytes);
double cw_lmo_message(const cw_lmo *model, int sender, int receiver, double bytes);
double cw_lmo_linear(const cw_lmo *model, int root, double bytes);
double cw_lmo_binomial(const cw_lmo *model, int root, double bytes);

/* True if the binomial scatter or gather is predicted to be faster than the linear one. */
int cw_hockney_prefers_binomial(const cw_hockney *model, int root, double bytes);
int cw_lmo_prefers_binomial(const cw_lmo *model, int root, double bytes);

/* Text: the model's name, the number of processes, and a line for each row of a table. They return 0, or -1 if the file
 * cannot be written, or does not have such a model. */
int cw_hockney_save(const cw_hockney *model, FILE *file);
int cw_hockney_load(cw_hockney *model, FILE *file);
int cw_lmo_save(const cw_lmo *model, FILE *file);
int cw_lmo_load(cw_lmo *model, FILE *file);

void cw_hockney_free(cw_hockney *model);
void cw_lmo_free(cw_lmo *model);

#endif
