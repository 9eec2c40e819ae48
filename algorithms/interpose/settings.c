/* What the user asked for: read by one process, known to all. */
#include "interpose.h"
#include "table_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Atomic(const interpose_settings *) interpose_published;

/* What is handed round: the texts, and what to watch for. NULL where there is none. */
typedef struct {
    char *table, *algorithms;
    int watch;
} wishes;

const char *interpose_variable(const char *name) {
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? NULL : text;
}

/* COLLWISE_REPORT=0 asks for no report. */
static const char *report_wish(void) {
    const char *where = interpose_variable("COLLWISE_REPORT");
    return where == NULL || strcmp(where, "0") == 0 ? NULL : where;
}

int interpose_is_asked_for(void) {
    return interpose_variable("COLLWISE_TABLE") != NULL || interpose_variable("COLLWISE_ALGORITHMS") != NULL ||
           report_wish() != NULL || interpose_variable("COLLWISE_PROOF") != NULL;
}

static void warn(const char *place, int line, const char *what) {
    fprintf(stderr, "collwise: warning: %s", place);
    if (line > 0) {
        fprintf(stderr, ":%d", line);
    }
    fprintf(stderr, ": %s; using MPI's own collectives\n", what);
}

/* The whole file, closed by a zero; NULL with errno set where it cannot be read. */
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
    if (ferror(file) || length > INT_MAX) {
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

static char *read_file(const char *path) {
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

/* What the environment says. A table that cannot be read takes the wish for algorithms with it. */
static wishes read_wishes(void) {
    const char *path = interpose_variable("COLLWISE_TABLE"), *algorithms = interpose_variable("COLLWISE_ALGORITHMS");
    wishes asked = {.watch = (report_wish() != NULL ? WATCH_REPORT : 0) |
                             (interpose_variable("COLLWISE_PROOF") != NULL ? WATCH_PROOF : 0)};
    if (path != NULL && (asked.table = read_file(path)) == NULL) {
        warn(path, 0, strerror(errno));
        return asked;
    }
    if (algorithms != NULL) {
        asked.algorithms = strdup(algorithms);
    }
    return asked;
}

/* The names that texts may use, from the registry; 0 if memory runs out. Free names->algorithms. */
static int make_names(table_names *names) {
    int count = 0;
    while (collwise_registry[count].collective != NULL) {
        count++;
    }
    table_algorithm *algorithms = malloc(((size_t)count + 1) * sizeof *algorithms);
    for (int i = 0; algorithms != NULL && i < count; i++) {
        algorithms[i] = (table_algorithm){(int)collwise_registry[i].kind, collwise_registry[i].name};
    }
    *names = (table_names){collwise_collective_names, COLLWISE_COLLECTIVES, algorithms, count};
    return algorithms != NULL;
}

/* The texts as a table; NULL if they are empty or, after one warning by who `speaks`, malformed. */
static decision_table *make_table(const wishes *asked, int speaks) {
    table_names names;
    table_rules rules = {0};
    table_problem problem = {0};
    decision_table *table = NULL;
    const char *place = "COLLWISE_ALGORITHMS";
    int fine = make_names(&names);
    if (fine && asked->table != NULL && !table_read(asked->table, &names, &rules, &problem)) {
        place = interpose_variable("COLLWISE_TABLE");
        fine = 0;
    }
    if (fine && asked->algorithms != NULL) {
        fine = table_read_algorithms(asked->algorithms, &names, &rules, &problem);
    }
    if (fine && rules.count > 0) {
        table = decision_table_make(rules.list, rules.count, COLLWISE_COLLECTIVES);
    } else if (!fine && speaks) {
        warn(place, problem.line, problem.text);
    }
    free((void *)names.algorithms);
    free(rules.list);
    return table;
}

static unsigned kinds_of(const decision_table *table) {
    unsigned kinds = 0;
    for (int kind = 0; table != NULL && kind < COLLWISE_COLLECTIVES; kind++) {
        kinds |= (unsigned)decision_table_has(table, kind) << kind;
    }
    return kinds;
}

/* Publishes the settings unless that was done already, or there is nothing to do. */
static void publish(wishes *asked, int speaks) {
    decision_table *table = make_table(asked, speaks);
    free(asked->table);
    free(asked->algorithms);
    interpose_settings *settings = malloc(sizeof *settings);
    const interpose_settings *none = NULL;
    if (settings != NULL && (table != NULL || asked->watch != 0)) {
        *settings = (interpose_settings){table, asked->watch, kinds_of(table)};
        if (atomic_compare_exchange_strong(&interpose_published, &none, settings)) {
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

#ifdef SMPI_SHARED_MALLOC

/* Simulated processes share environment and memory: the first one to come reads for all, in no simulated time. Even
 * an empty result is kept, so that its warning comes once. */
static void agree(void) {
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&done)) {
        wishes asked = read_wishes();
        publish(&asked, 1);
    }
}

static void retire(void) {}

#else

static void hand_round(char **text, long length, int is_first) {
    if (length < 0) {
        return;
    }
    if (!is_first) {
        *text = malloc((size_t)length + 1);
        if (*text == NULL) {
            fprintf(stderr, "collwise: out of memory for a decision table\n");
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    PMPI_Bcast(*text, (int)length + 1, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static long length_of(const char *text) { return text == NULL ? -1 : (long)strlen(text); }

/* Nodes may have another environment, or not see the file. */
static void agree(void) {
    int is_first = is_first_process();
    wishes asked = {0};
    if (is_first) {
        asked = read_wishes();
    }
    long summary[] = {asked.watch, length_of(asked.table), length_of(asked.algorithms)};
    PMPI_Bcast(summary, 3, MPI_LONG, 0, MPI_COMM_WORLD);
    asked.watch = (int)summary[0];
    hand_round(&asked.table, summary[1], is_first);
    hand_round(&asked.algorithms, summary[2], is_first);
    publish(&asked, is_first);
}

/* Calls from here on are MPI's: states refer to the table, and nobody asks for states without settings. */
static void retire(void) {
    const interpose_settings *settings = atomic_exchange(&interpose_published, NULL);
    if (settings != NULL) {
        decision_table_free(settings->table);
        free((void *)settings);
    }
}

#endif

void interpose_set_up(void) {
    agree();
    const interpose_settings *settings = atomic_load(&interpose_published);
    if (settings == NULL || settings->watch == 0) {
        return;
    }
    interpose_counts_make();
    if ((settings->watch & WATCH_PROOF) != 0 && is_first_process()) {
        interpose_write_proof(interpose_variable("COLLWISE_PROOF"), -1);
    }
}

void interpose_wind_up(void) {
    const interpose_settings *settings = atomic_load(&interpose_published);
    if (settings != NULL && settings->watch != 0) {
        if ((settings->watch & WATCH_PROOF) != 0 && is_first_process()) {
            interpose_write_proof(interpose_variable("COLLWISE_PROOF"), interpose_calls());
        }
        if ((settings->watch & WATCH_REPORT) != 0) {
            interpose_print_report(report_wish());
        }
        interpose_counts_free();
    }
    retire();
}
