/* The list of experiments between a few processes. */
#include "../../simulator/programs/experiments/file.c"

#include <stdint.h>

enum { PROCS = 8 };

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    (void)comm;
    return malloc(bytes > 0 ? bytes : 1);
}

int MPI_Comm_size(MPI_Comm comm, int *procs) {
    (void)comm;
    *procs = PROCS;
    return MPI_SUCCESS;
}

/* Refusals, which rank 0 prints, would fill the terminal. */
int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    (void)comm;
    *rank = 1;
    return MPI_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    experiment_file file = program_experiments_parse(text);
    program_experiments_free(&file);
    free(text);
    return 0;
}
