/* Shows what Open MPI's collectives do below MPI's functions: their messages, waits, local work and scratch memory.
 *
 *     openmpi_trace FILE
 *
 * FILE has lines of two kinds:
 *
 *     force COLLECTIVE ID                                  component tuned runs its algorithm ID, or with 0 what it
 *                                                          decides, without segments, parameter or limit of requests,
 *                                                          as under rules with zeros
 *     call COLLECTIVE BYTES ALGORITHM PART_BYTES COUNT     one call of MPI's own collective, rooted at 0, and one of
 *                                                          ours with these parameters, for its memory
 *
 * `coll_tuned_use_dynamic_rules` has to be set. For each call each process writes a line of JSON to FILE.RANK: what
 * Open MPI did, in order, and what it and ours allocated, in bytes.
 *
 *     S3:64  R3:64    a blocking send to 3 of 64 bytes; a blocking receive
 *     s3:64  r3:64    the same, non-blocking: a request, numbered from 0 on
 *     w0,1            a wait for these requests
 *     +64  =64        a reduction of 64 bytes; a copy
 *
 * '*' behind a message: its data is not contiguous; '!': it is sent synchronously.
 *
 * Open MPI's collectives call its point-to-point layer through a table of functions, `mca_pml`, and wait through
 * another one, `ompi_request_functions`. Both are symbols of its library, and their entries are known by the names of
 * the functions in them, so that no header of Open MPI's own is needed. */
#include "timing.h"
#include "work_line.h"
#include "workload.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ENTRIES = 24, WAIT_ENTRIES = 8, MAX_REQUESTS = 1 << 16, MAX_ALLOCATIONS = 4096 };
enum { SYNCHRONOUS_MODE }; /* MCA_PML_BASE_SEND_SYNCHRONOUS */

static int is_on;
static char *told;
static size_t told_bytes, told_room;

static MPI_Request requests[MAX_REQUESTS]; /* by number, MPI_REQUEST_NULL when waited for */
static char *postings[MAX_REQUESTS];       /* what a persistent request does when it starts */
static int request_count;

static size_t allocations[MAX_ALLOCATIONS];
static int allocation_count;
static const char *allocates_for; /* the file of the library or program whose allocations count, NULL: none */

static void tell(const char *format, ...) {
    char word[64];
    va_list arguments;
    va_start(arguments, format);
    size_t length = (size_t)vsnprintf(word, sizeof word, format, arguments);
    va_end(arguments);
    if (told_bytes + length >= told_room) {
        told_room = 2 * (told_room + sizeof word);
        told = realloc(told, told_room);
    }
    memcpy(told + told_bytes, word, length + 1);
    told_bytes += length;
}

/* --- Messages ----------------------------------------------------------------------------------------------------- */

typedef int send_function(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm);
typedef int start_send_function(const void *, size_t, MPI_Datatype, int, int, int, MPI_Comm, MPI_Request *);
typedef int receive_function(void *, size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
typedef int start_receive_function(void *, size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int start_function(size_t, MPI_Request *);

static send_function *real_send;
static start_send_function *real_isend, *real_isend_init;
static receive_function *real_recv;
static start_receive_function *real_irecv, *real_irecv_init;
static start_function *real_start;

static size_t bytes_of(size_t count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return count * (size_t)size;
}

static int is_contiguous(size_t count, MPI_Datatype type) {
    MPI_Aint lower, extent, true_lower, true_extent;
    int size;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    PMPI_Type_get_true_extent(type, &true_lower, &true_extent);
    return count == 0 || size == 0 || (true_extent == size && (count == 1 || extent == size));
}

static void tell_message(char kind, size_t count, MPI_Datatype type, int peer, int is_synchronous) {
    tell(" %c%d:%zu%s%s", kind, peer, bytes_of(count, type), is_contiguous(count, type) ? "" : "*",
         is_synchronous ? "!" : "");
}

static void keep(MPI_Request request, char *posting) {
    if (request_count == MAX_REQUESTS) {
        program_fail("openmpi_trace", "too many", "requests");
    }
    requests[request_count] = request;
    postings[request_count++] = posting;
}

static int traced_send(const void *data, size_t count, MPI_Datatype type, int peer, int tag, int mode, MPI_Comm comm) {
    if (is_on) {
        tell_message('S', count, type, peer, mode == SYNCHRONOUS_MODE);
    }
    return real_send(data, count, type, peer, tag, mode, comm);
}

static int traced_recv(void *data, size_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status *in) {
    if (is_on) {
        tell_message('R', count, type, peer, 0);
    }
    return real_recv(data, count, type, peer, tag, comm, in);
}

static int traced_isend(const void *data, size_t count, MPI_Datatype type, int peer, int tag, int mode, MPI_Comm comm,
                        MPI_Request *request) {
    int result = real_isend(data, count, type, peer, tag, mode, comm, request);
    if (is_on) {
        tell_message('s', count, type, peer, mode == SYNCHRONOUS_MODE);
        keep(*request, NULL);
    }
    return result;
}

static int traced_irecv(void *data, size_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                        MPI_Request *request) {
    int result = real_irecv(data, count, type, peer, tag, comm, request);
    if (is_on) {
        tell_message('r', count, type, peer, 0);
        keep(*request, NULL);
    }
    return result;
}

/* Keeps the words that describe a persistent request: they are written each time it starts. */
static int keep_initialised(int result, char kind, size_t count, MPI_Datatype type, int peer, int mode,
                            MPI_Request made) {
    if (is_on) {
        size_t before = told_bytes;
        tell_message(kind, count, type, peer, mode == SYNCHRONOUS_MODE);
        keep(made, strdup(told + before));
        told_bytes = before;
        told[told_bytes] = '\0';
    }
    return result;
}

static int traced_isend_init(const void *data, size_t count, MPI_Datatype type, int peer, int tag, int mode,
                             MPI_Comm comm, MPI_Request *request) {
    int result = real_isend_init(data, count, type, peer, tag, mode, comm, request);
    return keep_initialised(result, 's', count, type, peer, mode, *request);
}

static int traced_irecv_init(void *data, size_t count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                             MPI_Request *request) {
    int result = real_irecv_init(data, count, type, peer, tag, comm, request);
    return keep_initialised(result, 'r', count, type, peer, -1, *request);
}

/* The number of a request that has not been waited for, -1 if it is not one of these. */
static int number_of(MPI_Request request) {
    int number = request == MPI_REQUEST_NULL ? -1 : request_count - 1;
    while (number >= 0 && requests[number] != request) {
        number--;
    }
    return number;
}

/* Requests get their numbers when they are made: persistent ones have to start in that order. */
static int traced_start(size_t count, MPI_Request *started) {
    for (size_t i = 0; is_on && i < count; i++) {
        int number = number_of(started[i]);
        if (number < 0 || postings[number] == NULL || (i > 0 && number_of(started[i - 1]) != number - 1)) {
            program_fail("openmpi_trace", "persistent requests", "start in another order than they were made in");
        }
        tell("%s", postings[number]);
    }
    return real_start(count, started);
}

/* --- Waits -------------------------------------------------------------------------------------------------------- */

typedef int wait_function(MPI_Request *, MPI_Status *);
typedef int wait_all_function(size_t, MPI_Request *, MPI_Status *);
typedef int wait_any_function(size_t, MPI_Request *, int *, MPI_Status *);

static wait_function *real_wait;
static wait_all_function *real_wait_all;
static wait_any_function *real_wait_any;

static void tell_wait(size_t count, const MPI_Request *waited) {
    const char *before = " w";
    for (size_t i = 0; is_on && i < count; i++) {
        int number = number_of(waited[i]);
        if (number >= 0) {
            tell("%s%d", before, number);
            requests[number] = MPI_REQUEST_NULL;
            before = ",";
        }
    }
}

static int traced_wait(MPI_Request *request, MPI_Status *status) {
    tell_wait(1, request);
    return real_wait(request, status);
}

static int traced_wait_all(size_t count, MPI_Request *waited, MPI_Status *statuses) {
    tell_wait(count, waited);
    return real_wait_all(count, waited, statuses);
}

static int traced_wait_any(size_t count, MPI_Request *waited, int *index, MPI_Status *status) {
    if (is_on) {
        program_fail("openmpi_trace", "a wait for any request", "has no order to compare");
    }
    return real_wait_any(count, waited, index, status);
}

/* --- Local work and memory ---------------------------------------------------------------------------------------- */

/* The operation of reductions: one of the program's own, which MPI calls. */
static void sum(void *in, void *result, int *count, MPI_Datatype *type) {
    (void)in, (void)result;
    if (is_on) {
        tell(" +%zu", bytes_of((size_t)*count, *type));
    }
}

/* Open MPI's copies, of one type's elements and from one type to another, which call this program's functions instead
 * of the library's. The second ones may make the first ones. */
int opal_datatype_copy_content_same_ddt(const void *type, int count, char *to, char *from);
int opal_datatype_copy_content_same_ddt(const void *type, int count, char *to, char *from) {
    static int (*real)(const void *, int, char *, char *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "opal_datatype_copy_content_same_ddt");
    }
    if (is_on && count > 0) {
        tell(" =%zu", bytes_of((size_t)count, (MPI_Datatype)(size_t)type));
    }
    return real(type, count, to, from);
}

int ompi_datatype_sndrcv(const void *from, int from_count, const void *from_type, void *to, int to_count,
                         const void *to_type);
int ompi_datatype_sndrcv(const void *from, int from_count, const void *from_type, void *to, int to_count,
                         const void *to_type) {
    static int (*real)(const void *, int, const void *, void *, int, const void *);
    int was_on = is_on;
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "ompi_datatype_sndrcv");
    }
    if (is_on && from_count > 0) {
        tell(" =%zu", bytes_of((size_t)from_count, (MPI_Datatype)(size_t)from_type));
    }
    is_on = 0;
    int result = real(from, from_count, from_type, to, to_count, to_type);
    is_on = was_on;
    return result;
}

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

static void note_allocation(size_t bytes, void *caller) {
    Dl_info from;
    const char *wanted = allocates_for;
    allocates_for = NULL; /* dladdr may allocate, too */
    if (wanted != NULL && dladdr(caller, &from) != 0 && strcmp(from.dli_fname, wanted) == 0 &&
        allocation_count < MAX_ALLOCATIONS) {
        allocations[allocation_count++] = bytes;
    }
    allocates_for = wanted;
}

void *malloc(size_t bytes) {
    note_allocation(bytes, __builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    note_allocation(count * bytes, __builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

static void print_allocations(FILE *to, const char *name) {
    fprintf(to, ", \"%s\": [", name);
    for (int i = 0; i < allocation_count; i++) {
        fprintf(to, "%s%zu", i == 0 ? "" : ", ", allocations[i]);
    }
    fprintf(to, "]");
    allocation_count = 0;
}

/* --- Tables of functions ------------------------------------------------------------------------------------------ */

/* The name of a function, "" if it has none. */
static const char *name_of(void *function) {
    Dl_info known;
    int is_one = function != NULL && dladdr(function, &known) != 0 && known.dli_saddr == function;
    return is_one ? known.dli_sname : "";
}

/* Puts `traced` in the place of the function whose name ends like this, and remembers the real one. */
static void replace(void **table, int entries, const char *ending, void *traced, void *real) {
    for (int i = 0; i < entries; i++) {
        const char *name = name_of(table[i]);
        size_t length = strlen(name), end = strlen(ending);
        if (length >= end && strcmp(name + length - end, ending) == 0) {
            memcpy(real, &table[i], sizeof table[i]);
            table[i] = traced;
            return;
        }
    }
    program_fail("openmpi_trace", "Open MPI's tables have no function", ending);
}

static void replace_all(void) {
    void **messages = dlsym(RTLD_DEFAULT, "mca_pml"), **waits = dlsym(RTLD_DEFAULT, "ompi_request_functions");
    if (messages == NULL || waits == NULL) {
        program_fail("openmpi_trace", "this is no Open MPI whose", "tables of functions are known");
    }
    replace(messages, TABLE_ENTRIES, "_send", (void *)traced_send, &real_send);
    replace(messages, TABLE_ENTRIES, "_recv", (void *)traced_recv, &real_recv);
    replace(messages, TABLE_ENTRIES, "_isend", (void *)traced_isend, &real_isend);
    replace(messages, TABLE_ENTRIES, "_irecv", (void *)traced_irecv, &real_irecv);
    replace(messages, TABLE_ENTRIES, "_isend_init", (void *)traced_isend_init, &real_isend_init);
    replace(messages, TABLE_ENTRIES, "_irecv_init", (void *)traced_irecv_init, &real_irecv_init);
    replace(messages, TABLE_ENTRIES, "_start", (void *)traced_start, &real_start);
    replace(waits, WAIT_ENTRIES, "_wait", (void *)traced_wait, &real_wait);
    replace(waits, WAIT_ENTRIES, "_wait_all", (void *)traced_wait_all, &real_wait_all);
    replace(waits, WAIT_ENTRIES, "_wait_any", (void *)traced_wait_any, &real_wait_any);
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

/* Sets a variable of component tuned; those that a collective does not have are left out. */
static void set(const char *collective, const char *name, int value) {
    char variable[128];
    int index, count;
    MPI_T_cvar_handle handle;
    snprintf(variable, sizeof variable, "coll_tuned_%s_algorithm%s", collective, name);
    if (MPI_T_cvar_get_index(variable, &index) != MPI_SUCCESS) {
        if (*name == '\0') {
            program_fail("openmpi_trace", "no variable", variable);
        }
        return;
    }
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS ||
        MPI_T_cvar_write(handle, &value) != MPI_SUCCESS) {
        program_fail("openmpi_trace", "cannot set", variable);
    }
    MPI_T_cvar_handle_free(&handle);
}

static void force(const char *collective, int id) {
    const char *const others[] = {"_segmentsize", "_tree_fanout", "_chain_fanout", "_max_requests"};
    set(collective, "", id);
    for (int i = 0; i < 4; i++) {
        set(collective, others[i], 0);
    }
}

static void *zeros(size_t bytes) { return calloc(bytes, 1); }

static const char *file_of(void *address) {
    Dl_info of;
    return dladdr(address, &of) == 0 ? "" : of.dli_fname;
}

static void trace(const collwise_algorithm *algorithm, collwise_parameters with, size_t bytes, MPI_Op op, FILE *to) {
    MPI_Comm comm;
    workload work;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* component tuned reads its variables when a communicator is made */
    collwise_private(comm);
    if (!program_workload_make(&work, algorithm->kind, bytes, 0, comm, (workload_memory){zeros, free})) {
        program_fail("openmpi_trace", "out of", "memory");
    }
    work.call.op = op;
    request_count = allocation_count = 0;
    told_bytes = 0;
    tell("");
    allocates_for = file_of((void *)PMPI_Bcast);
    is_on = 1;
    program_workload_call_mpi(work.kind, &work.call, NULL);
    is_on = 0;
    allocates_for = NULL;
    fprintf(to, "{\"theirs\": \"%s\"", told);
    print_allocations(to, "their_memory");
    if (collwise_objection(algorithm, &work.call) == NULL) {
        allocates_for = file_of((void *)trace);
        collwise_run(algorithm, &work.call, with);
        allocates_for = NULL;
    }
    print_allocations(to, "our_memory");
    fprintf(to, "}\n");
    program_workload_free(&work);
    MPI_Comm_free(&comm);
}

/* The request of a line. */
typedef struct {
    char collective[64];
    int id; /* of Open MPI's algorithm that is forced */
    size_t bytes;
    const collwise_algorithm *algorithm; /* of a call, else NULL */
    collwise_parameters with;
} request;

static request parse_request(work_line *line) {
    char kind[8], name[64];
    request one = {.id = 0};
    program_work_word(line, "kind", kind, sizeof kind);
    program_work_word(line, "collective", one.collective, sizeof one.collective);
    if (strcmp(kind, "force") == 0) {
        one.id = (int)program_work_integer(line, "id", 0, INT_MAX);
    } else {
        one.bytes = (size_t)program_work_integer(line, "bytes", 0, 1 << 30);
        program_work_word(line, "algorithm", name, sizeof name);
        one.with.part_bytes = (size_t)program_work_integer(line, "part_bytes", 0, LLONG_MAX);
        one.with.count = (int)program_work_integer(line, "count", 0, INT_MAX);
        one.algorithm = collwise_find(one.collective, name);
        if (one.algorithm == NULL) {
            program_work_refuse(line, "not force, nor call of a known algorithm");
        }
    }
    program_work_end(line);
    return one;
}

int main(int argc, char **argv) {
    char written[4096];
    int rank, provided;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *text = argc == 2 ? program_read_text(argv[1]) : NULL, *rest = text;
    if (text == NULL) {
        program_fail("openmpi_trace", "usage:", "openmpi_trace FILE");
    }
    snprintf(written, sizeof written, "%s.%d", argv[1], rank);
    FILE *to = fopen(written, "w");
    if (to == NULL) {
        program_fail("openmpi_trace", "cannot write", written);
    }
    MPI_Op_create(sum, 1, &op);
    replace_all();
    for (work_line line; program_work_next(&rest, &line);) {
        request one = parse_request(&line);
        if (!program_work_is_right(&line)) {
            program_work_print_refusal(to, -1, &line);
        } else if (one.algorithm == NULL) {
            force(one.collective, one.id);
        } else {
            trace(one.algorithm, one.with, one.bytes, op, to);
        }
    }
    free(text);
    fclose(to);
    MPI_Op_free(&op);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
