/* The method by which programs measure on real MPI: its options and its output. */
#ifndef COLLWISE_METHOD_OPTIONS_H
#define COLLWISE_METHOD_OPTIONS_H

#include "collwise.h"
#include "measuring/collwise_measuring.h"

#include <stddef.h>

/*     --timing root|maximum|global     --synchronisation barriers|rounds
 *     --min-repetitions N  --max-repetitions N  --confidence C  --relative-error E
 *     --late-seconds S     rounds only: a start skew above this is late
 *     --calls N            calls of a repetition, one right after the other
 *     --limit-seconds S    limit for a case, 0 for none    --warmup N    at least 1
 *     --nrep RSE           repetitions by Hunold & Carpen-Amarie 2018, until the relative standard error RSE; K is the
 *                          least number of repetitions; the largest number and the relative error are not used
 *     --message-buffer N  --integer-buffer N    bytes of the buffers of mock-ups
 *     --samples            print every repetition */
typedef struct {
    cw_method method;
    int by_nrep;
    cw_nrep nrep;
    int samples;
    collwise_memory memory;
} method_options;

/* Reads the words of a command line, `program FILE [OPTION...]`, and returns the text of the file, on every process.
 * Ends the program where something is wrong. Collective; freed with free(). */
char *program_read_work(const char *program, char **argv, method_options *options);

/* Print `, "name": value` within a JSON record; null for what JSON has no number for. */
void program_print_number(const char *name, double value);
void program_print_samples(const double *samples, size_t count);

/* Values that a record has in place of the repetitions; NULL: it has none. */
typedef struct {
    double *values;
    size_t count;
} recorded_samples;

/* Process 0 of `comm` prints the record of a case, whose samples are on process `root`; `others` take their place.
 * Collective. */
void program_report_case(long id, int root, MPI_Comm comm, const method_options *options, cw_result *result,
                         double t1_seconds, const recorded_samples *others);

#endif
