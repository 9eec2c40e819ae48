/* The sizes of the structures that Python's side of the engine mirrors (library.py, tables.py). */
#include "engine.h"
#include "recorder.h"

size_t schedule_layout(int structure) {
    static const size_t sizes[] = {sizeof(schedule),      sizeof(schedule_choice), sizeof(schedule_case),
                                   sizeof(schedule_span), sizeof(schedule_trace),  sizeof(schedule_comparison),
                                   sizeof(schedule_log),  sizeof(schedule_result), sizeof(schedule_network)};
    return structure < 0 || (size_t)structure >= sizeof sizes / sizeof *sizes ? 0 : sizes[structure];
}
