/* Failure and memory of a recording, and what it makes: words of the process that is being recorded, and the sizes and
 * programs of all, each kept once. */
#include "recording.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local recording *recording_now;

/* --- Failure and memory ------------------------------------------------------------------------------------------- */

static _Thread_local const atomic_int *stop_flag;

void schedule_obey(const atomic_int *flag) { stop_flag = flag; }

int schedule_is_stopped(void) {
    return stop_flag != NULL && atomic_load_explicit(stop_flag, memory_order_relaxed) != 0;
}

_Noreturn void recording_fail(recording *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->problem, to->problem_bytes, format, arguments);
    va_end(arguments);
    longjmp(to->give_up, 1);
}

void *recording_checked(void *memory) {
    if (memory == NULL) {
        recording_fail(recording_now, "out of memory");
    }
    return memory;
}

/* Makes room for one more item; rooms double. */
void *recording_grown(void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) {
        return items;
    }
    *room = *room == 0 ? 16 : 2 * *room;
    return recording_checked(realloc(items, *room * item_bytes));
}

enum { MIN_BLOCK_BYTES = 4096, MAX_BLOCK_BYTES = 1 << 20 };

/* Zeros that live as long as the schedule. */
void *recording_kept(schedule *made, size_t bytes) {
    struct schedule_block *block = made->blocks;
    bytes = (bytes + sizeof(schedule_word) - 1) / sizeof(schedule_word) * sizeof(schedule_word);
    if (block == NULL || block->bytes - block->used < bytes) {
        size_t room = block == NULL ? MIN_BLOCK_BYTES : 2 * block->bytes;
        room = room > MAX_BLOCK_BYTES ? MAX_BLOCK_BYTES : room;
        room = room < bytes ? bytes : room;
        block = recording_checked(calloc(1, sizeof *block + room));
        *block = (struct schedule_block){.next = made->blocks, .bytes = room};
        made->blocks = block;
    }
    block->used += bytes;
    return (char *)block->memory + block->used - bytes;
}

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9e3779b97f4a7c15U;
    return value ^ value >> 29;
}

void recording_require_others(recording *to) {
    if (to->processes_alone > 0) {
        recording_fail(to, "process %d has to know of others", to->now.rank);
    }
}

/* --- Sizes and programs, each kept once --------------------------------------------------------------------------- */

/* The place of a key in a table of numbers: where it is, or the free place where it belongs. */
static size_t size_place(const recording *to, uint64_t bytes) {
    size_t place = mixed(bytes) & (to->size_places - 1);
    while (to->size_table[place] != 0 && to->made->sizes[to->size_table[place] - 1] != bytes) {
        place = (place + 1) & (to->size_places - 1);
    }
    return place;
}

uint32_t recording_size_number(recording *to, uint64_t bytes) {
    schedule *made = to->made;
    if (to->latest_size != 0 && made->sizes[to->latest_size - 1] == bytes) {
        return to->latest_size - 1;
    }
    size_t place = size_place(to, bytes);
    if (to->size_table[place] != 0) {
        to->latest_size = to->size_table[place];
        return to->latest_size - 1;
    }
    made->sizes = recording_grown(made->sizes, made->size_count, &to->size_room, sizeof *made->sizes);
    made->sizes[made->size_count++] = bytes;
    to->size_table[place] = (uint32_t)made->size_count;
    if (2 * made->size_count > to->size_places) {
        to->size_places *= 2;
        free(to->size_table);
        to->size_table = NULL;
        to->size_table = recording_checked(calloc(to->size_places, sizeof *to->size_table));
        for (size_t i = 0; i < made->size_count; i++) {
            to->size_table[size_place(to, made->sizes[i])] = (uint32_t)i + 1;
        }
    }
    return (uint32_t)made->size_count - 1;
}

static uint64_t hash_of(const schedule_word *words, size_t length) {
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++) {
        hash = mixed(hash ^ words[i]);
    }
    return hash;
}

/* Programs of one length mostly differ in their first word already. */
static int is_program_of(const schedule_program *known, const process *done) {
    size_t length = done->length;
    return known->length == length && known->is_cut == done->is_cut &&
           (length == 0 || (known->words[0] == done->words[0] &&
                            memcmp(known->words, done->words, length * sizeof *done->words) == 0));
}

static size_t program_place(const recording *to, const process *done) {
    size_t place = hash_of(done->words, done->length) & (to->program_places - 1);
    while (to->program_table[place] != 0 && !is_program_of(&to->made->programs[to->program_table[place] - 1], done)) {
        place = (place + 1) & (to->program_places - 1);
    }
    return place;
}

/* Makes the table of the sources in `to->sources`. */
static void set_sources(recording *to, schedule_program *program) {
    static schedule_source none[2];
    uint32_t procs = (uint32_t)to->made->procs, bits = 1;
    if (program->sources.count == 0) {
        program->sources = (schedule_sources){.places = none, .bits = bits};
        return;
    }
    program->sources.is_direct = !to->made->has_windows && 2 * program->sources.count >= procs;
    while (1U << bits < (program->sources.is_direct ? procs : 2 * program->sources.count)) {
        bits++;
    }
    program->sources.bits = bits;
    program->sources.places = recording_kept(to->made, sizeof *program->sources.places << program->sources.bits);
    for (uint32_t i = 0; i < program->sources.count; i++) {
        *schedule_find_source(program->sources, to->sources[i]) = (schedule_source){to->sources[i] + 1, i};
    }
}

static void find_sources(recording *to, schedule_program *program, uint32_t mark) {
    for (size_t i = 0; i < program->length; i++) {
        uint32_t way = schedule_way_of(program->words[i]), kind = way >> SCHEDULE_PEER_BITS;
        if (schedule_is_reached(schedule_kind_of(program->words[i]))) {
            uint32_t *seen_by = &to->seen_by[(size_t)kind * (size_t)to->made->procs + schedule_way_peer(way)];
            if (*seen_by != mark) {
                *seen_by = mark;
                to->sources[program->sources.count++] = way;
            }
        }
    }
    set_sources(to, program);
}

static void add_source(recording *to, schedule_program *program, uint32_t relative) {
    if (schedule_find_source(program->sources, relative)->source_and_one != 0) {
        return;
    }
    for (uint32_t place = 0; place >> program->sources.bits == 0; place++) {
        if (program->sources.places[place].source_and_one != 0) {
            to->sources[program->sources.places[place].number] = program->sources.places[place].source_and_one - 1;
        }
    }
    to->sources[program->sources.count++] = relative;
    set_sources(to, program);
}

void recording_add_sources(recording *to) {
    const schedule *made = to->made;
    for (int rank = 0; rank < made->procs; rank++) {
        const schedule_program *program = &made->programs[made->program_of[rank]];
        for (size_t i = 0; i < program->length; i++) {
            schedule_kind kind = schedule_kind_of(program->words[i]);
            uint32_t ahead = schedule_peer_of(program->words[i]);
            if (kind == SCHEDULE_TELL || (schedule_is_message(kind) && !schedule_is_receive(kind))) {
                schedule_program *other = &made->programs[made->program_of[schedule_peer(made, rank, ahead)]];
                if (other->is_cut) {
                    add_source(to, other, schedule_way_to(made, program->words[i]));
                }
            }
        }
    }
}

/* The number of requests that a cut process has to keep: those from the oldest one on that it has not waited for. */
static uint32_t open_requests(const process *cut) {
    uint32_t made = 0, oldest = 0;
    unsigned char *is_over = recording_checked(calloc(cut->length + 1, 1));
    for (size_t i = 0; i < cut->length; i++) {
        schedule_kind kind = schedule_kind_of(cut->words[i]);
        if (kind == SCHEDULE_FORK) {
            i += schedule_size_of(cut->words[i]); /* strands wait for all requests that they make */
            continue;
        }
        made += kind == SCHEDULE_START_SEND || kind == SCHEDULE_START_SYNCHRONOUS || kind == SCHEDULE_START_RECEIVE ||
                kind == SCHEDULE_AWAIT;
        if (kind == SCHEDULE_WAIT) {
            memset(is_over + made - schedule_size_of(cut->words[i]), 1, schedule_peer_of(cut->words[i]));
        }
    }
    while (oldest < made && is_over[oldest]) {
        oldest++;
    }
    free(is_over);
    return made - oldest;
}

/* Keeps the program of a process that is done. */
void recording_keep(recording *to, const process *done) {
    schedule *made = to->made;
    uint32_t *latest = &to->latest_program;
    if (*latest != 0 && is_program_of(&made->programs[*latest - 1], done)) {
        made->program_of[done->rank] = *latest - 1;
        return;
    }
    size_t place = program_place(to, done);
    if (to->program_table[place] == 0) {
        made->programs =
            recording_grown(made->programs, made->program_count, &to->program_room, sizeof *made->programs);
        schedule_program *added = &made->programs[made->program_count];
        uint32_t open = done->is_cut ? open_requests(done) : 0;
        *added = (schedule_program){.length = done->length,
                                    .is_cut = done->is_cut,
                                    .requests = open > done->max_requests ? open : done->max_requests,
                                    .strands = done->strands,
                                    .strand_requests = done->strand_requests};
        made->is_begin = made->is_begin || done->is_cut;
        made->has_strands = made->has_strands || done->strands > 0;
        added->words = recording_kept(made, done->length * sizeof *added->words);
        if (done->length > 0) {
            memcpy(added->words, done->words, done->length * sizeof *added->words);
        }
        to->program_table[place] = (uint32_t)++made->program_count;
        find_sources(to, added, (uint32_t)made->program_count);
    }
    *latest = to->program_table[place];
    made->program_of[done->rank] = *latest - 1;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static void append(schedule_kind kind, uint32_t peer, uint32_t size) {
    recording *to = recording_now;
    process *now = &to->now;
    now->words = recording_grown(now->words, now->length, &now->room, sizeof *now->words);
    now->words[now->length++] = schedule_make_word(kind, peer, size);
    if (to->max_words > 0 && now->length >= to->max_words) {
        recording_cut(to);
    }
}

_Noreturn void recording_cut(recording *to) {
    process *now = &to->now;
    now->length = now->fork > 0 ? now->fork - 1 : now->length;
    now->is_cut = 1;
    longjmp(now->ends, 1);
}

/* Copies in succession are one word. */
void recording_add_copies(void) {
    uint64_t copied = recording_now->now.copied;
    if (copied > 0) {
        recording_now->now.copied = 0;
        append(SCHEDULE_COPY, 0, recording_size_number(recording_now, copied));
    }
}

void recording_add(schedule_kind kind, uint32_t peer, uint32_t size) {
    recording_add_copies();
    append(kind, peer, size);
}
