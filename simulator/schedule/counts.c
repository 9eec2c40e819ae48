#include "counts.h"

void schedule_count(const schedule *of, uint32_t *counts) {
    for (size_t i = 0; i < of->program_count; i++) {
        const schedule_program *program = &of->programs[i];
        for (size_t k = 0; k < program->length; k++) {
            schedule_word word = program->words[k];
            schedule_kind kind = schedule_kind_of(word);
            if (schedule_is_local(kind) || (schedule_is_message(kind) && schedule_peer_of(word) != 0)) {
                counts[(i * SCHEDULE_KINDS + kind) * of->size_count + schedule_size_of(word)]++;
            }
        }
    }
}
