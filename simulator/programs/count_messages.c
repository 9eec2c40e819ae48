/* Counts the messages that MPICH sends through UCX. Loaded before the program by LD_PRELOAD:
 *
 *     COLLWISE_COUNTS=FILE   FILE.RANK gets a line "BYTES COUNT" for each size of message that the process sent
 *
 * Counted is what the program does between MPI_Pcontrol(1) and MPI_Pcontrol(0), which writes the file. MPICH must send
 * messages between processes of one node through UCX as well (MPIR_CVAR_NOLOCAL=1). */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_SIZES = 4096 };

typedef void *(*send_function)(void *, const void *, size_t, uint64_t, const void *);

static atomic_int counting;
static struct {
    size_t bytes;
    long count;
} sizes[MAX_SIZES];
static int known;

static void count(size_t bytes) {
    if (!atomic_load(&counting)) {
        return;
    }
    int place = 0;
    while (place < known && sizes[place].bytes != bytes) {
        place++;
    }
    if (place == MAX_SIZES) {
        fprintf(stderr, "count_messages: too many sizes\n");
        abort();
    }
    known = place == known ? known + 1 : known;
    sizes[place].bytes = bytes;
    sizes[place].count++;
}

static void *forward(const char *name, void *end_point, const void *data, size_t bytes, uint64_t tag,
                     const void *with) {
    /* POSIX lets dlsym return functions as pointers to data. */
    union {
        void *data;
        send_function send;
    } found = {dlsym(RTLD_NEXT, name)};
    count(bytes);
    return found.send(end_point, data, bytes, tag, with);
}

void *ucp_tag_send_nbx(void *end_point, const void *data, size_t bytes, uint64_t tag, const void *with);
void *ucp_tag_send_sync_nbx(void *end_point, const void *data, size_t bytes, uint64_t tag, const void *with);
int MPI_Pcontrol(const int level, ...);

void *ucp_tag_send_nbx(void *end_point, const void *data, size_t bytes, uint64_t tag, const void *with) {
    return forward("ucp_tag_send_nbx", end_point, data, bytes, tag, with);
}

void *ucp_tag_send_sync_nbx(void *end_point, const void *data, size_t bytes, uint64_t tag, const void *with) {
    return forward("ucp_tag_send_sync_nbx", end_point, data, bytes, tag, with);
}

static void write_counts(const char *path, const char *rank) {
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", path, rank);
    FILE *file = fopen(name, "w");
    if (file == NULL) {
        perror(name);
        abort();
    }
    for (int place = 0; place < known; place++) {
        fprintf(file, "%zu %ld\n", sizes[place].bytes, sizes[place].count);
    }
    fclose(file);
}

int MPI_Pcontrol(const int level, ...) {
    atomic_store(&counting, level);
    const char *path = getenv("COLLWISE_COUNTS"), *rank = getenv("PMI_RANK");
    if (rank == NULL) {
        rank = getenv("PMIX_RANK");
    }
    if (level == 0 && path != NULL && rank != NULL) {
        write_counts(path, rank);
    }
    return 0;
}
