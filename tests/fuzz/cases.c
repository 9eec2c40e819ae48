/* Lines of the list of cases that the benchmark program reads. */
#define main benchmark_main
#include "../../simulator/programs/benchmark.c"
#undef main

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    work_line line = program_work_line_of(text);
    bench_case one = parse_case(&line, 8);
    program_work_end(&line);
    if (program_work_is_right(&line) && objection(&one) == NULL) {
        kind_of(&one);
        parameters_of(&one);
    }
    free(text);
    return 0;
}
