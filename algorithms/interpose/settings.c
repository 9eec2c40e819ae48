/* Reads the user's settings on one process and shares them with all others. */
#include "interpose.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic(const interpose_settings *) interpose_published;
atomic_uint interpose_watched;

/* The user's request before it is parsed; texts that were not given are NULL. */
typedef struct {
    char *table, *algorithms;
    int counting;           /* COUNT_FOR_* bits */
    collwise_memory memory; /* of mock-ups */
} request;

const char *interpose_variable(const char *name) {
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? NULL : text;
}

/* The destination of the report; NULL without a report. */
static const char *report_target(void) {
    const char *where = interpose_variable("COLLWISE_REPORT");
    return where == NULL || strcmp(where, "0") == 0 ? NULL : where;
}

int interpose_is_requested(void) {
    return interpose_variable("COLLWISE_TABLE") != NULL || interpose_variable("COLLWISE_ALGORITHMS") != NULL ||
           report_target() != NULL || interpose_variable("COLLWISE_LOAD_MARKER") != NULL;
}

static void warn(const char *place, int line, const char *what) {
    fprintf(stderr, "collwise: warning: %s", place);
    if (line > 0) {
        fprintf(stderr, ":%d", line);
    }
    fprintf(stderr, ": %s; using MPI's own collectives\n", what);
}

/* The whole file as a string, in which zero bytes are replaced; NULL, with errno set, if it cannot be read. */
static char *read_whole(FILE *file) {
    char *text = NULL;
    size_t length = 0, room = 0, taken;
    do {
        if (length + 1 >= room) {
            room = 2 * room + 4096;
            char *longer = realloc(text, room);
            if (longer == NULL) {
                free(text);
                return NULL;
            }
            text = longer;
        }
        taken = fread(text + length, 1, room - length - 1, file);
        length += taken;
    } while (taken > 0);
    if (ferror(file) || length >= INT_MAX) { /* what MPI_Bcast can count, with the zero at the end */
        errno = ferror(file) ? errno : EFBIG;
        free(text);
        return NULL;
    }
    for (char *zero = memchr(text, '\0', length); zero != NULL;
         zero = memchr(zero, '\0', length - (size_t)(zero - text))) {
        *zero = '?';
    }
    text[length] = '\0';
    return text;
}

char *interpose_read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    char *text = read_whole(file);
    int problem = errno;
    fclose(file);
    errno = problem;
    return text;
}

/* A number of bytes, KiB, MiB or GiB; 0 if the text is no such size. */
static size_t size_from(const char *text) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    for (int i = 0; i < 4 && *text >= '0' && *text <= '9'; i++) {
        if (strcmp(end, units[i]) == 0 && number <= ULLONG_MAX >> 10 * i) {
            return (size_t)(number << 10 * i);
        }
    }
    return 0;
}

/* The size of a buffer of mock-ups. */
static size_t read_size(const char *name, size_t usual) {
    const char *text = interpose_variable(name);
    size_t bytes = text == NULL ? usual : size_from(text);
    if (bytes == 0) {
        fprintf(stderr, "collwise: warning: %s: '%s' is no size such as 64MiB; using %zu bytes\n", name, text, usual);
        return usual;
    }
    return bytes;
}

/* The request of this process's environment. If the table cannot be read, COLLWISE_ALGORITHMS is ignored as well. */
static request read_request(void) {
    const char *path = interpose_variable("COLLWISE_TABLE"), *algorithms = interpose_variable("COLLWISE_ALGORITHMS");
    request asked = {.counting = (report_target() != NULL ? COUNT_FOR_REPORT : 0) |
                                 (interpose_variable("COLLWISE_LOAD_MARKER") != NULL ? COUNT_FOR_LOAD_MARKER : 0),
                     .memory = {read_size("COLLWISE_MESSAGE_BUFFER", COLLWISE_MESSAGE_BUFFER_BYTES),
                                read_size("COLLWISE_INTEGER_BUFFER", COLLWISE_INTEGER_BUFFER_BYTES)}};
    if (path != NULL && (asked.table = interpose_read_file(path)) == NULL) {
        warn(path, 0, strerror(errno));
        return asked;
    }
    if (algorithms != NULL) {
        asked.algorithms = strdup(algorithms);
    }
    return asked;
}

/* Processes that went on without the rules of the others would wait for these for ever. */
static void *checked(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for a decision table\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

table_names interpose_names(void) {
    int count = 0;
    while (collwise_registry[count].collective != NULL) {
        count++;
    }
    table_algorithm *algorithms = checked(malloc(((size_t)count + 1) * sizeof *algorithms));
    for (int i = 0; i < count; i++) {
        const collwise_algorithm *entry = &collwise_registry[i];
        algorithms[i] = (table_algorithm){(int)entry->kind, entry->name, entry->part_parameter, entry->count_parameter,
                                          entry->limit_parameter};
    }
    return (table_names){collwise_collective_names, COLLWISE_COLLECTIVES, algorithms, count};
}

/* The table that the texts describe; NULL if they are empty or malformed. A process that `warns` says what is wrong. */
static decision_table *make_table(const request *asked, int warns) {
    table_names names = interpose_names();
    table_rules rules = {0};
    table_problem problem = {0};
    decision_table *table = NULL;
    const char *place = "COLLWISE_ALGORITHMS";
    int is_valid = asked->table == NULL || decision_table_read(asked->table, &names, &rules, &problem);
    if (!is_valid) {
        place = interpose_variable("COLLWISE_TABLE");
    }
    if (is_valid && asked->algorithms != NULL) {
        is_valid = decision_table_read_algorithms(asked->algorithms, &names, &rules, &problem);
    }
    if (is_valid && rules.count > 0) {
        table = checked(decision_table_make(rules.list, rules.count, COLLWISE_COLLECTIVES));
    } else if (!is_valid && warns) {
        warn(place, problem.line, problem.text);
    }
    free((void *)names.algorithms);
    free(rules.list);
    return table;
}

static unsigned watched_by(const interpose_settings *settings) {
    unsigned watched = settings->counting != 0 ? ~0U : 0;
    for (int kind = 0; settings->table != NULL && kind < COLLWISE_COLLECTIVES; kind++) {
        watched |= (unsigned)decision_table_has(settings->table, kind) << kind;
    }
    return watched;
}

/* Publishes the settings unless another process of the simulation has done so or the user asked for nothing. */
static void publish(request *asked, int warns) {
    decision_table *table = make_table(asked, warns);
    free(asked->table);
    free(asked->algorithms);
    collwise_limit_memory(asked->memory);
    interpose_settings *settings = checked(malloc(sizeof *settings));
    const interpose_settings *none = NULL;
    if (table != NULL || asked->counting != 0) {
        *settings = (interpose_settings){table, asked->counting};
        if (atomic_compare_exchange_strong(&interpose_published, &none, settings)) {
            atomic_store(&interpose_watched, watched_by(settings));
            return;
        }
    }
    free(settings);
    decision_table_free(table);
}

static int is_first_process(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

static void share_text(char **text, long length, int reads) {
    if (length < 0) {
        return;
    }
    if (!reads) {
        *text = checked(malloc((size_t)length + 1));
    }
    interpose_share(*text, (int)length + 1);
}

static long length_of(const char *text) { return text == NULL ? -1 : (long)strlen(text); }

/* One process reads for all: other nodes may have another environment, or not see the file. */
static void share_settings(void) {
    interpose_part part = interpose_own_part();
    int reads = part == INTERPOSE_READS;
    if (part == INTERPOSE_SHARES) {
        return;
    }
    request asked = {0};
    if (reads) {
        asked = read_request();
    }
    long summary[] = {asked.counting, length_of(asked.table), length_of(asked.algorithms),
                      (long)asked.memory.message_bytes, (long)asked.memory.integer_bytes};
    interpose_share(summary, sizeof summary);
    asked.counting = (int)summary[0];
    asked.memory = (collwise_memory){(size_t)summary[3], (size_t)summary[4]};
    share_text(&asked.table, summary[1], reads);
    share_text(&asked.algorithms, summary[2], reads);
    publish(&asked, reads);
}

/* All calls from here on are forwarded to MPI. The states of communicators still refer to the table, but without
 * settings they are not read. */
static void withdraw_settings(void) {
    if (!interpose_owns_settings()) {
        return;
    }
    atomic_store(&interpose_watched, 0);
    const interpose_settings *settings = atomic_exchange(&interpose_published, NULL);
    if (settings != NULL) {
        decision_table_free(settings->table);
        free((void *)settings);
    }
}

void interpose_start(void) {
    share_settings();
    const interpose_settings *settings = atomic_load(&interpose_published);
    if (settings == NULL || settings->counting == 0) {
        return;
    }
    interpose_counts_make();
    if ((settings->counting & COUNT_FOR_LOAD_MARKER) != 0 && is_first_process()) {
        interpose_write_load_marker(interpose_variable("COLLWISE_LOAD_MARKER"), -1);
    }
}

void interpose_stop(void) {
    const interpose_settings *settings = atomic_load(&interpose_published);
    if (settings != NULL && settings->counting != 0) {
        if ((settings->counting & COUNT_FOR_LOAD_MARKER) != 0 && is_first_process()) {
            const interpose_counts *own = interpose_own_counts();
            interpose_write_load_marker(interpose_variable("COLLWISE_LOAD_MARKER"), own == NULL ? 0 : own->calls);
        }
        if ((settings->counting & COUNT_FOR_REPORT) != 0) {
            interpose_print_report(report_target());
        }
        interpose_counts_free();
    }
    withdraw_settings();
}
