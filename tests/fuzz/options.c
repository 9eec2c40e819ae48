/* The command lines of verify, latency, the applications, and the programs that measure. The first byte says which;
 * words are divided by line feeds. */
#include "method_options.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

static jmp_buf ended;
static char text_of_file[] = "";

#define exit(code) longjmp(ended, code)
#define main verify_main
#include "../../simulator/programs/verify/verify.c"
#undef main
#define main latency_main
#define options latency_options
#include "../../simulator/programs/latency.c"
#undef options
#undef main
#include "../../simulator/programs/applications/application.c"

void program_abort(void) { longjmp(ended, 2); }
void program_fail(const char *program, const char *what, const char *detail) {
    fprintf(stderr, "%s: %s %s\n", program, what, detail);
    program_abort();
}
char *program_read_text(const char *path) { return *path == '/' ? text_of_file : NULL; }
int MPI_Init(int *argc, char ***argv) { return (void)argc, (void)argv, MPI_SUCCESS; }
int MPI_Finalize(void) { return MPI_SUCCESS; }
int MPI_Comm_rank(MPI_Comm comm, int *rank) { return (void)comm, *rank = 0, MPI_SUCCESS; }
int MPI_Comm_size(MPI_Comm comm, int *procs) { return (void)comm, *procs = 4, MPI_SUCCESS; }

static void read_words(int program, int count, char **words) {
    method_options method;
    application app = {.name = "application"};
    long size = 1;
    int overlap = 0;
    const program_option own[] = {{"--size", OPTION_LONG, &size, 1, 1L << 40, NULL},
                                  {"--overlap", OPTION_INT, &overlap, 0, 1, NULL},
                                  APPLICATION_OPTIONS(app)};
    switch (program % 4) {
    case 0:
        program_read_work("benchmark", words, &method);
        break;
    case 1:
        parse(words + 1);
        break;
    case 2:
        read_options(words + 1);
        break;
    default:
        application_start(&app, &count, &words, own);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { WORDS = 64 };
    if (size == 0) {
        return 0;
    }
    char *text = calloc(size + 1, 1), *rest = text, *words[WORDS + 1] = {"program"};
    memcpy(text, data + 1, size - 1);
    int count = 1;
    while (count < WORDS && (words[count] = strsep(&rest, "\n")) != NULL) {
        count++;
    }
    words[count] = NULL;
    if (setjmp(ended) == 0) {
        read_words(data[0], count, words);
    }
    free(text);
    return 0;
}
