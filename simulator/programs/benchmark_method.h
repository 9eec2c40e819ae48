/* How the benchmark measures on real MPI: its options, and what it prints of a case. */
#ifndef COLLWISE_BENCHMARK_METHOD_H
#define COLLWISE_BENCHMARK_METHOD_H

#include "measuring/collwise_measuring.h"

/*     --timing root|maximum|global     --synchronisation barriers|rounds
 *     --min-repetitions N  --max-repetitions N  --confidence C  --relative-error E
 *     --late-seconds S     rounds only: a start skew above this is late
 *     --limit-seconds S    limit for a case, 0 for none    --warmup N    at least 1
 *     --nrep RSE           repetitions by Hunold & Carpen-Amarie 2018, until the relative standard error RSE; K is the
 *                          least number of repetitions; the largest number and the relative error are not used
 *     --samples            print every repetition */
typedef struct {
    cw_method method;
    int by_nrep;
    cw_nrep nrep;
    int samples;
} bench_options;

/* Reads arguments up to a NULL. Returns what is wrong with them, naming the option, or NULL. */
const char *bench_options_read(bench_options *options, char **words);

/* Process 0 of `comm` prints the record of a case, whose samples are on process `root`. Collective. */
void bench_report(long id, int root, MPI_Comm comm, const bench_options *options, cw_result *result, double t1_seconds);

#endif
