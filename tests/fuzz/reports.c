/* The reports of libcollwise: whatever a program names its communicators and calls, they are well-formed. */
#include "../../algorithms/interpose/report.c"

#include <ctype.h>
#include <stdint.h>

enum { WORLD = 8, MOST = 4 };

const interpose_function interpose_functions[] = {{"bcast", NULL}, {"reduce_scatter_block", NULL}, {"ibcast", "why"}};
static interpose_counts counts;

/* --- The rest of the library, and of MPI -------------------------------------------------------------------------- */

interpose_counts *interpose_own_counts(void) { return &counts; }
double interpose_seconds(void) { return 1; }
int PMPI_Comm_rank(MPI_Comm comm, int *rank) { return (void)comm, *rank = 0, MPI_SUCCESS; }
int PMPI_Comm_size(MPI_Comm comm, int *procs) { return (void)comm, *procs = WORLD, MPI_SUCCESS; }
int PMPI_Comm_free(MPI_Comm *comm) { return (void)comm, MPI_SUCCESS; }
int PMPI_Type_commit(MPI_Datatype *type) { return (void)type, MPI_SUCCESS; }
int PMPI_Type_free(MPI_Datatype *type) { return (void)type, MPI_SUCCESS; }

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made) {
    (void)color, (void)key;
    *made = comm;
    return MPI_SUCCESS;
}

int PMPI_Comm_split_type(MPI_Comm comm, int split, int key, MPI_Info info, MPI_Comm *made) {
    (void)split, (void)key, (void)info;
    *made = comm;
    return MPI_SUCCESS;
}

int PMPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *made) {
    (void)count;
    *made = of;
    return MPI_SUCCESS;
}

int PMPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    (void)data, (void)count, (void)type, (void)root, (void)comm;
    return MPI_SUCCESS;
}

/* Two nodes. */
int PMPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm) {
    (void)send, (void)send_count, (void)send_type, (void)receive_count, (void)receive_type, (void)root, (void)comm;
    for (int i = 0; i < WORLD; i++) {
        ((int *)receive)[i] = i / (WORLD / 2) * (WORLD / 2);
    }
    return MPI_SUCCESS;
}

/* The other processes have no records. */
int PMPI_Recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    (void)from, (void)tag, (void)comm, (void)status;
    if (type == MPI_INT && count == 1) {
        *(int *)data = 0;
    }
    return MPI_SUCCESS;
}

int PMPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    (void)data, (void)count, (void)type, (void)to, (void)tag, (void)comm;
    return MPI_SUCCESS;
}

int PMPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    (void)count, (void)type, (void)op, (void)root, (void)comm;
    *(double *)receive = *(const double *)send;
    return MPI_SUCCESS;
}

/* --- Counts from the input ---------------------------------------------------------------------------------------- */

static const uint8_t *at, *end;

static unsigned below(unsigned bound) { return at < end ? *at++ % bound : 0; }

static long long number(void) {
    long long value = 0;
    for (unsigned bytes = below(6); bytes > 0; bytes--) {
        value = value << 8 | below(256);
    }
    return value;
}

static interpose_group group(void) {
    interpose_group made = {.id = below(4), .procs = 1 + (int)below(4 * WORLD)};
    made.ranks = allocate((size_t)made.procs * sizeof *made.ranks);
    for (int i = 0; i < made.procs; i++) {
        made.ranks[i] = (int)below(WORLD + 1) - 1;
    }
    for (unsigned i = 0, length = below(MPI_MAX_OBJECT_NAME); i < length; i++) {
        made.name[i] = (char)below(256);
    }
    return made;
}

static interpose_row row(void) {
    static const char *const reasons[] = {"no rule", "", "needs a power of two, \"or\" not"};
    const collwise_algorithm *algorithm = &collwise_registry[below(100)];
    interpose_row made = {.function = (int)below(3), .group = (int)below((unsigned)counts.group_count)};
    made.size_bits = (int)below(INTERPOSE_NO_SIZE + 1);
    made.is_ours = (int)below(2);
    made.outcome = made.is_ours ? algorithm->name : reasons[below(3)];
    made.algorithm = made.is_ours ? algorithm : NULL;
    made.with = (collwise_parameters){.part_bytes = (size_t)number(), .count = (int)below(256), .limit_bytes = 1};
    made.first_calls = number();
    made.calls = made.first_calls + number();
    made.seconds = (double)number() / 1e6;
    made.bytes = (double)number();
    return made;
}

/* --- What must hold of a report ----------------------------------------------------------------------------------- */

static void check(int holds, const char *text) {
    if (!holds) {
        fprintf(stderr, "not well-formed:\n%s\n", text);
        abort();
    }
}

static void check_json(const char *text) {
    int depth = 0, is_string = 0;
    for (const char *c = text; *c != '\0'; c++) {
        check(isprint((unsigned char)*c) || *c == '\n', text);
        if (is_string && *c == '\\') {
            check(*++c == '"' || *c == '\\', text);
        } else if (*c == '"') {
            is_string = !is_string;
        } else if (!is_string) {
            depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
            check(strncmp(c, "nan", 3) != 0 && strncmp(c, "inf", 3) != 0, text);
        }
    }
    check(depth == 0 && !is_string, text);
}

static void check_csv(const char *text) {
    int commas = 0, is_string = 0;
    for (const char *c = text; *c != '\0'; c++) {
        is_string ^= *c == '"';
        commas += !is_string && *c == ',';
        if (*c == '\n') {
            check(!is_string && commas == 14, text);
            commas = 0;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    interpose_group groups[MOST];
    interpose_row rows[MOST];
    at = data;
    end = data + size;
    counts = (interpose_counts){.groups = groups, .rows = rows, .group_count = 1 + (int)below(MOST)};
    for (int i = 0; i < counts.group_count; i++) {
        groups[i] = group();
    }
    for (counts.row_count = (int)below(MOST + 1); counts.start < counts.row_count; counts.start++) {
        rows[(int)counts.start] = row();
    }
    counts.start = 0;
    interpose_report report = collect();
    char *text = NULL;
    size_t length = 0;
    unsigned format = below(3);
    FILE *file = open_memstream(&text, &length);
    if (format == 0) {
        interpose_write_json(file, &report);
    } else if (format == 1) {
        interpose_write_csv(file, &report);
    } else {
        interpose_write_text(file, &report);
    }
    fclose(file);
    if (format == 0) {
        check_json(text);
    } else if (format == 1) {
        check_csv(text);
    }
    free(text);
    free(report.list);
    for (int i = 0; i < counts.group_count; i++) {
        free(groups[i].ranks);
    }
    return 0;
}
