/* Counts calls by algorithm and size, and prints the report. */
#include "interpose.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTCOME_LENGTH = 96 };

/* The number of calls that agree in everything else; the form in which counts are sent to the process that prints. */
typedef struct {
    int kind, procs, size_bits;
    long long calls;
    char outcome[OUTCOME_LENGTH]; /* the algorithm, or why MPI's own ran */
} record;

typedef struct {
    pthread_mutex_t lock;
    long long calls;
    record *list;
    int count, room;
} counts;

/* --- Each process's own counts ----------------------------------------------------------------------------------- */

#ifdef SMPI_SHARED_MALLOC

static int counts_key(void) {
    static atomic_int key = MPI_KEYVAL_INVALID;
    return interpose_key(&key, MPI_COMM_NULL_DELETE_FN);
}

static counts *own_counts(void) {
    counts *own;
    int found;
    PMPI_Comm_get_attr(MPI_COMM_SELF, counts_key(), &own, &found);
    return found ? own : NULL;
}

static void store_counts(counts *own) {
    if (own == NULL) {
        PMPI_Comm_delete_attr(MPI_COMM_SELF, counts_key());
    } else {
        PMPI_Comm_set_attr(MPI_COMM_SELF, counts_key(), own);
    }
}

#else

static counts **stored_counts(void) {
    static counts *own;
    return &own;
}

static counts *own_counts(void) { return *stored_counts(); }
static void store_counts(counts *own) { *stored_counts() = own; }

#endif

void interpose_counts_make(void) {
    counts *own = calloc(1, sizeof *own);
    if (own != NULL) {
        pthread_mutex_init(&own->lock, NULL);
        store_counts(own);
    }
}

void interpose_counts_free(void) {
    counts *own = own_counts();
    if (own != NULL) {
        store_counts(NULL);
        pthread_mutex_destroy(&own->lock);
        free(own->list);
        free(own);
    }
}

static record make_record(collwise_collective kind, const char *algorithm, const char *reason, int size_bits,
                          MPI_Comm comm) {
    record made = {.kind = (int)kind, .size_bits = size_bits, .calls = 1};
    PMPI_Comm_size(comm, &made.procs);
    if (algorithm != NULL) {
        snprintf(made.outcome, sizeof made.outcome, "%s", algorithm);
    } else {
        snprintf(made.outcome, sizeof made.outcome, "MPI's own: %s", reason);
    }
    return made;
}

static int compare(const void *left, const void *right) {
    const record *a = left, *b = right;
    int by_outcome = strcmp(a->outcome, b->outcome);
    return a->kind != b->kind     ? a->kind - b->kind
           : a->procs != b->procs ? a->procs - b->procs
           : by_outcome != 0      ? by_outcome
                                  : a->size_bits - b->size_bits;
}

/* Without memory the call is not counted. */
static void append(counts *own, record made) {
    if (own->count == own->room) {
        int room = 2 * own->room + 16;
        record *longer = realloc(own->list, (size_t)room * sizeof *longer);
        if (longer == NULL) {
            return;
        }
        own->list = longer;
        own->room = room;
    }
    own->list[own->count++] = made;
}

static void add(counts *own, record made) {
    for (int i = 0; i < own->count; i++) {
        if (compare(&own->list[i], &made) == 0) {
            own->list[i].calls++;
            return;
        }
    }
    append(own, made);
}

static int is_first_of(MPI_Comm comm) {
    int rank = -1;
    return comm != MPI_COMM_NULL && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == 0;
}

void interpose_count(const interpose_settings *settings, collwise_collective kind, const char *algorithm,
                     const char *reason, int size_bits, MPI_Comm comm) {
    counts *own = own_counts();
    if (own == NULL) {
        return;
    }
    int is_counted = (settings->counting & COUNT_FOR_REPORT) != 0 && is_first_of(comm);
    pthread_mutex_lock(&own->lock);
    own->calls++;
    if (is_counted) {
        add(own, make_record(kind, algorithm, reason, size_bits, comm));
    }
    pthread_mutex_unlock(&own->lock);
}

long long interpose_calls(void) {
    const counts *own = own_counts();
    return own == NULL ? 0 : own->calls;
}

/* --- The report -------------------------------------------------------------------------------------------------- */

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for the report\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* Gathers the records of all processes at the first one; *count is their number, 0 on the other processes. */
static record *collect(int *count) {
    const counts *own = own_counts();
    int rank, procs, bytes = own == NULL ? 0 : own->count * (int)sizeof(record);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &procs);
    size_t senders = rank == 0 ? (size_t)procs : 0;
    int *lengths = allocate(senders * sizeof *lengths), *displacements = allocate(senders * sizeof *displacements);
    PMPI_Gather(&bytes, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    int total = 0;
    for (int i = 0; rank == 0 && i < procs; i++) {
        displacements[i] = total;
        total += lengths[i];
    }
    record *all = allocate((size_t)total);
    PMPI_Gatherv(own == NULL ? NULL : own->list, bytes, MPI_BYTE, all, lengths, displacements, MPI_BYTE, 0,
                 MPI_COMM_WORLD);
    free(lengths);
    free(displacements);
    *count = total / (int)sizeof(record);
    return all;
}

/* Sorts the records and adds up equal ones; returns how many are left. */
static int merge(record *list, int count) {
    int merged = 0;
    qsort(list, (size_t)count, sizeof *list, compare);
    for (int i = 0; i < count; i++) {
        if (merged > 0 && compare(&list[merged - 1], &list[i]) == 0) {
            list[merged - 1].calls += list[i].calls;
        } else {
            list[merged++] = list[i];
        }
    }
    return merged;
}

/* The sizes that have this bit length: "0", "1", "2 to 3", "4 to 7". */
static void describe_sizes(char *text, size_t room, int bits) {
    if (bits == INTERPOSE_NO_SIZE) {
        snprintf(text, room, "-");
    } else if (bits < 2) {
        snprintf(text, room, "%d", bits);
    } else {
        unsigned long long low = 1ULL << (bits - 1);
        snprintf(text, room, "%llu to %llu", low, low + (low - 1));
    }
}

static void print(FILE *to, const record *list, int count) {
    int procs, width = (int)strlen("algorithm");
    PMPI_Comm_size(MPI_COMM_WORLD, &procs);
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(list[i].outcome);
        width = length > width ? length : width;
    }
    fprintf(to, "collwise: collectives of this run of %d processes, counted once a call\n", procs);
    fprintf(to, "%-20s  %9s  %-*s  %24s  %10s\n", "collective", "processes", width, "algorithm", "message bytes",
            "calls");
    for (int i = 0; i < count; i++) {
        char sizes[64];
        describe_sizes(sizes, sizeof sizes, list[i].size_bits);
        fprintf(to, "%-20s  %9d  %-*s  %24s  %10lld\n", collwise_collective_names[list[i].kind], list[i].procs, width,
                list[i].outcome, sizes, list[i].calls);
    }
    if (count == 0) {
        fprintf(to, "none was called\n");
    }
    fflush(to);
}

void interpose_print_report(const char *target) {
    int count;
    record *all = collect(&count);
    if (is_first_of(MPI_COMM_WORLD)) {
        int to_file = target != NULL && strcmp(target, "1") != 0;
        FILE *to = to_file ? fopen(target, "w") : stderr;
        if (to == NULL) {
            fprintf(stderr, "collwise: warning: COLLWISE_REPORT: %s cannot be written; the report follows\n", target);
            to = stderr;
        }
        print(to, all, merge(all, count));
        if (to != stderr) {
            fclose(to);
        }
    }
    free(all);
}

void interpose_write_load_marker(const char *path, long long calls) {
    FILE *to = path == NULL ? NULL : fopen(path, "w");
    if (to != NULL) {
        fprintf(to, "init\n");
        if (calls >= 0) {
            fprintf(to, "calls %lld\n", calls);
        }
        fclose(to);
    }
}
