/* The list of experiments between a few processes. What it refuses ends the program, here the input. */
#include "../../simulator/programs/experiments/file.c"

#include <setjmp.h>
#include <stdint.h>

enum { PROCS = 8 };

static jmp_buf refused;

void fail(const char *what, const char *detail) {
    (void)what;
    (void)detail;
    longjmp(refused, 1);
}

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    (void)comm;
    return malloc(bytes > 0 ? bytes : 1);
}

int MPI_Comm_size(MPI_Comm comm, int *procs) {
    (void)comm;
    *procs = PROCS;
    return MPI_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *volatile text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (setjmp(refused) == 0) {
        experiment_file file = experiment_file_parse(text);
        experiment_file_free(&file);
    }
    free(text);
    return 0;
}
