/* The environment of libcollwise: lines NAME=VALUE up to an empty one, and behind it the file of the decision table. */
#include "../../algorithms/interpose/interpose.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *lines; /* divided by zeros; an empty one is the last */
static char *file_text;
static size_t file_bytes;

static char *value_of(const char *name) {
    for (char *line = lines; *line != '\0'; line += strlen(line) + 1) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == '=') {
            return line + length + 1;
        }
    }
    return NULL;
}

static FILE *opened(const char *path, const char *mode) {
    return *path == '/' ? fmemopen(file_text, file_bytes, mode) : NULL;
}

#define getenv value_of
#define fopen opened
#include "../../algorithms/interpose/settings.c"

/* --- The rest of the library, on one process ---------------------------------------------------------------------- */

int PMPI_Comm_rank(MPI_Comm comm, int *rank) { return (void)comm, *rank = 0, MPI_SUCCESS; }
interpose_part interpose_own_part(void) { return INTERPOSE_READS; }
void interpose_share(void *data, int bytes) { (void)data, (void)bytes; }
int interpose_owns_settings(void) { return 1; }
void interpose_counts_make(void) {}
void interpose_counts_free(void) {}
interpose_counts *interpose_own_counts(void) { return NULL; }
void collwise_limit_memory(collwise_memory limit) { (void)limit; }
void interpose_print_report(const char *target) { (void)strlen(target); }
void interpose_write_load_marker(const char *path, long long calls) { (void)strlen(path), (void)calls; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 3, 1);
    memcpy(text, data, size);
    char *end = strstr(text, "\n\n"), *stop = end == NULL ? text + size : end;
    file_text = end == NULL ? stop : end + 2;
    file_bytes = (size_t)(text + size - file_text) + 1;
    for (char *c = text; c < stop; c++) {
        *c = *c == '\n' ? '\0' : *c;
    }
    memset(stop, 0, end == NULL ? 1 : 2);
    lines = text;
    interpose_is_requested();
    interpose_start();
    const interpose_settings *settings = atomic_load(&interpose_published);
    for (int kind = 0; settings != NULL && settings->table != NULL && kind < COLLWISE_COLLECTIVES; kind++) {
        const decision_row *row = decision_table_row(settings->table, kind, 16, 4);
        if (row != NULL) {
            decision_row_choice(row, 8192);
        }
    }
    interpose_stop();
    free(text);
    return 0;
}
