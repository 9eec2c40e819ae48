/* Adds up the counts of all processes, and writes the report and the load marker. */
#include "interpose.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = 0 };

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "collwise: out of memory for the report\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* --- The processes of a communicator ------------------------------------------------------------------------------ */

/* Returns the lowest rank on the node of each process. SMPI's allgather has all P^2 messages under way at once, so this
 * is a gather and a broadcast. Freed with free(). */
static int *nodes_of_world(int procs) {
    int label, *nodes = allocate((size_t)procs * sizeof *nodes);
    MPI_Comm node;
    PMPI_Comm_rank(MPI_COMM_WORLD, &label);
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, label, MPI_INFO_NULL, &node);
    PMPI_Bcast(&label, 1, MPI_INT, 0, node);
    PMPI_Comm_free(&node);
    PMPI_Gather(&label, 1, MPI_INT, nodes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    PMPI_Bcast(nodes, procs, MPI_INT, 0, MPI_COMM_WORLD);
    return nodes;
}

/* The largest number of the communicator's processes on one node. */
static int max_per_node(const interpose_group *group, const int *nodes, int world) {
    int most = 0, *on_node = allocate((size_t)world * sizeof *on_node);
    memset(on_node, 0, (size_t)world * sizeof *on_node);
    for (int i = 0; i < group->procs; i++) {
        if (group->ranks[i] >= 0) {
            int here = ++on_node[nodes[group->ranks[i]]];
            most = here > most ? here : most;
        }
    }
    free(on_node);
    return most;
}

/* The number of ranks from the first one on that have equal distances. */
static int run_length(const int *ranks, int count) {
    int length = count < 2 ? count : 2;
    while (length < count && ranks[length] - ranks[length - 1] == ranks[1] - ranks[0]) {
        length++;
    }
    return length;
}

/* "0-3,8", "0-12:4" with a distance of 4; ends with "..." where there is no room. */
static void describe_ranks(char text[INTERPOSE_TEXT], const int *ranks, int count) {
    enum { LONGEST = 40 };
    size_t length = 0;
    text[0] = '\0';
    while (count > 0) {
        int run = run_length(ranks, count), step = run > 1 ? ranks[1] - ranks[0] : 1;
        run = run == 2 && step != 1 ? 1 : run;
        const char *comma = length == 0 ? "" : ",";
        if (length + LONGEST > INTERPOSE_TEXT) {
            snprintf(text + length, INTERPOSE_TEXT - length, "%s...", comma);
            return;
        }
        length += (size_t)snprintf(text + length, INTERPOSE_TEXT - length, "%s%d", comma, ranks[0]);
        if (run > 1) {
            length += (size_t)snprintf(text + length, INTERPOSE_TEXT - length, "-%d", ranks[run - 1]);
        }
        if (run > 1 && step != 1) {
            length += (size_t)snprintf(text + length, INTERPOSE_TEXT - length, ":%d", step);
        }
        ranks += run;
        count -= run;
    }
}

/* Adds " NAME=VALUE" to the text, without the blank at its start; nothing without a name or a value. */
static void add_parameter(char text[INTERPOSE_TEXT], const char *name, unsigned long long value) {
    size_t length = strlen(text);
    if (name != NULL && value > 0) {
        snprintf(text + length, INTERPOSE_TEXT - length, "%s%s=%llu", length == 0 ? "" : " ", name, value);
    }
}

/* "segment_bytes=8192 radix=4": what an algorithm ran with, as tables have it, with its defaults. */
static void describe_parameters(char text[INTERPOSE_TEXT], const interpose_row *row) {
    const collwise_algorithm *algorithm = row->algorithm;
    text[0] = '\0';
    if (algorithm != NULL) {
        int count = row->with.count > 0 ? row->with.count : algorithm->default_count;
        add_parameter(text, algorithm->part_parameter, row->with.part_bytes);
        add_parameter(text, algorithm->limit_parameter, row->with.limit_bytes);
        add_parameter(text, algorithm->count_parameter, (unsigned long long)count);
    }
}

/* --- Adding up ---------------------------------------------------------------------------------------------------- */

static int order(long long a, long long b) { return (a > b) - (a < b); }

static int compare(const void *left, const void *right) {
    const interpose_record *a = left, *b = right;
    int orders[] = {
        order(a->function, b->function),
        order(a->procs, b->procs),
        order(b->is_ours, a->is_ours),
        strcmp(a->outcome, b->outcome),
        strcmp(a->parameters, b->parameters),
        order(a->size_bits, b->size_bits),
        strcmp(a->communicator, b->communicator),
        order(a->processes_per_node, b->processes_per_node),
        order(a->group > b->group, a->group < b->group),
    };
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (orders[i] != 0) {
            return orders[i];
        }
    }
    return 0;
}

/* Sorts the records and adds up those of the same communicator. */
static void merge(interpose_report *report) {
    int merged = 0;
    interpose_record *list = report->list;
    qsort(list, (size_t)report->count, sizeof *list, compare);
    for (int i = 0; i < report->count; i++) {
        interpose_record *last = &list[merged - 1];
        if (merged > 0 && compare(last, &list[i]) == 0) {
            last->calls += list[i].calls;
            last->all_calls += list[i].all_calls;
            last->seconds += list[i].seconds;
            last->bytes += list[i].bytes;
            last->shortest = list[i].shortest < last->shortest ? list[i].shortest : last->shortest;
            last->longest = list[i].longest > last->longest ? list[i].longest : last->longest;
        } else {
            list[merged++] = list[i];
        }
    }
    report->count = merged;
}

/* The records of the calling process. */
static interpose_report own_report(void) {
    const interpose_counts *own = interpose_own_counts();
    interpose_report report = {0};
    PMPI_Comm_size(MPI_COMM_WORLD, &report.procs);
    report.count = own == NULL ? 0 : own->row_count;
    report.seconds = own == NULL ? 0 : interpose_seconds() - own->start;
    report.list = allocate((size_t)report.count * sizeof *report.list);
    int *nodes = nodes_of_world(report.procs);
    for (int i = 0; i < report.count; i++) {
        const interpose_row *row = &own->rows[i];
        const interpose_group *group = &own->groups[row->group];
        interpose_record made = {.group = group->id,
                                 .function = row->function,
                                 .procs = group->procs,
                                 .processes_per_node = max_per_node(group, nodes, report.procs),
                                 .size_bits = row->size_bits,
                                 .is_ours = row->is_ours,
                                 .communicators = 1,
                                 .calls = row->first_calls,
                                 .all_calls = row->calls,
                                 .seconds = row->seconds,
                                 .shortest = row->seconds,
                                 .longest = row->seconds,
                                 .bytes = row->bytes};
        snprintf(made.outcome, sizeof made.outcome, "%s", row->outcome);
        describe_parameters(made.parameters, row);
        snprintf(made.communicator, sizeof made.communicator, "%.*s", INTERPOSE_TEXT - 1, group->name);
        describe_ranks(made.ranks, group->ranks, group->procs);
        report.list[i] = made;
    }
    free(nodes);
    return report;
}

/* Receives the records of another process and adds them. */
static void take(interpose_report *report, int from, MPI_Datatype record, MPI_Comm comm) {
    int count;
    PMPI_Recv(&count, 1, MPI_INT, from, TAG, comm, MPI_STATUS_IGNORE);
    size_t own = (size_t)report->count;
    interpose_record *all = allocate((own + (size_t)count) * sizeof *all);
    memcpy(all, report->list, own * sizeof *all);
    PMPI_Recv(all + own, count, record, from, TAG, comm, MPI_STATUS_IGNORE);
    free(report->list);
    report->list = all;
    report->count += count;
    merge(report);
}

/* Adds up the records along a binomial tree, so that no process holds more of them than the report has lines. The
 * program may have left messages and receives behind in MPI_COMM_WORLD, hence a communicator of its own. */
static interpose_report collect(void) {
    interpose_report report = own_report();
    double seconds = report.seconds;
    int rank;
    MPI_Comm comm;
    MPI_Datatype record; /* since bytes of them all need not fit an int */
    PMPI_Type_contiguous((int)sizeof *report.list, MPI_BYTE, &record);
    PMPI_Type_commit(&record);
    PMPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
    PMPI_Comm_rank(comm, &rank);
    merge(&report);
    for (int step = 1; step < report.procs && (rank & (step - 1)) == 0; step *= 2) {
        if ((rank & step) != 0) {
            PMPI_Send(&report.count, 1, MPI_INT, rank - step, TAG, comm);
            PMPI_Send(report.list, report.count, record, rank - step, TAG, comm);
        } else if (rank + step < report.procs) {
            take(&report, rank + step, record, comm);
        }
    }
    PMPI_Reduce(&seconds, &report.seconds, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
    PMPI_Type_free(&record);
    PMPI_Comm_free(&comm);
    report.seconds /= report.procs;
    return report;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), own = strlen(end);
    return length >= own && strcmp(text + length - own, end) == 0;
}

static void write_report(const char *target, interpose_report *report) {
    int to_file = target != NULL && strcmp(target, "1") != 0;
    FILE *to = to_file ? fopen(target, "w") : stderr;
    if (to == NULL) {
        fprintf(stderr, "collwise: warning: COLLWISE_REPORT: %s cannot be written; the report follows\n", target);
        to = stderr;
    }
    if (to != stderr && ends_with(target, ".json")) {
        interpose_write_json(to, report);
    } else if (to != stderr && ends_with(target, ".csv")) {
        interpose_write_csv(to, report);
    } else {
        interpose_write_text(to, report);
    }
    fflush(to);
    if (to != stderr) {
        fclose(to);
    }
}

void interpose_print_report(const char *target) {
    interpose_report report = collect();
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        write_report(target, &report);
    }
    free(report.list);
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
