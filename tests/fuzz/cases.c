/* Lines of the list of cases that the benchmark program reads. */
#define main benchmark_main
#include "../../simulator/programs/benchmark.c"
#undef main

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *line = malloc(size + 1);
    bench_case one;
    memcpy(line, data, size);
    line[size] = '\0';
    if (parse_case(line, &one) && objection(&one, 8) == NULL) {
        kind_of(&one);
        parameters_of(&one);
    }
    free(line);
    return 0;
}
