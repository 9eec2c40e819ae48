/* Lines of the list of cases that the benchmark program reads. */
#define main benchmark_main
#include "../../simulator/programs/benchmark.c"
#undef main

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1), *rest = text;
    memcpy(text, data, size);
    for (work_line line; program_work_next(&rest, &line);) {
        bench_case one = parse_case(&line, 8);
        if (program_work_is_right(&line)) {
            kind_of(&one);
            parameters_of(&one);
        }
    }
    free(text);
    return 0;
}
