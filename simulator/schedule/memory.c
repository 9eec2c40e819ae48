/* Failure and memory of plays. */
#include "play.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>

/* Recordings and plays ask for megabytes and free them soon. By default glibc gives such memory back to the system
 * until a program has freed a block of 32 MiB; to get it again takes longer than a short play. These are the limits as
 * glibc sets them after such a block. */
enum { MAX_BLOCK_BYTES = 32 << 20, MAX_FREE_BYTES = 2 * MAX_BLOCK_BYTES };

static __attribute__((constructor)) void keep_freed_memory(void) {
    mallopt(M_MMAP_THRESHOLD, MAX_BLOCK_BYTES);
    mallopt(M_TRIM_THRESHOLD, MAX_FREE_BYTES);
}
#endif

_Noreturn void play_fail(play *all, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(all->result.problem, sizeof all->result.problem, format, arguments);
    va_end(arguments);
    all->result.failed = 1;
    longjmp(all->give_up, 1);
}

void *play_checked(play *all, void *memory) {
    if (memory == NULL) {
        play_fail(all, "out of memory");
    }
    return memory;
}

/* Fails where the system has less memory than that. Linux grants more than there is, and then stops other programs. */
static void check_free(play *all, size_t bytes) {
    enum { KNOWN_BYTES = 1 << 26 };
    FILE *file = bytes < KNOWN_BYTES ? NULL : fopen("/proc/meminfo", "r");
    if (file == NULL) {
        return;
    }
    char line[128];
    unsigned long long free_kib = 0;
    int is_known = 0;
    while (!is_known && fgets(line, sizeof line, file) != NULL) {
        is_known = sscanf(line, "MemAvailable: %llu kB", &free_kib) == 1;
    }
    fclose(file);
    if (is_known && bytes / 1024 > free_kib) {
        play_fail(all, "the play takes more memory than is free, %.1f GiB", (double)free_kib / (1 << 20));
    }
}

void *play_grown(play *all, void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) {
        return items;
    }
    size_t more = *room == 0 ? 4 : 2 * *room;
    check_free(all, (more - *room) * item_bytes);
    void *grown = play_checked(all, realloc(items, more * item_bytes));
    *room = more;
    return grown;
}

/* The place of the items in a block of memory: at the first line behind a pointer to the block. */
static char *first_line(void *block) {
    uintptr_t least = (uintptr_t)block + sizeof block;
    return (char *)((least + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
}

static void *block_of(const void *items) { return items == NULL ? NULL : ((void *const *)items)[-1]; }

void *play_grown_lines(play *all, void *items, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) {
        return items;
    }
    char *before = block_of(items);
    size_t offset = before == NULL ? 0 : (size_t)((char *)items - before);
    size_t more = *room == 0 ? 4 : 2 * *room;
    check_free(all, (more - *room) * item_bytes);
    char *block = play_checked(all, realloc(before, more * item_bytes + sizeof block + LINE_BYTES));
    char *lines = first_line(block);
    if (offset > 0 && lines != block + offset) {
        memmove(lines, block + offset, count * item_bytes);
    }
    ((void **)(void *)lines)[-1] = block;
    *room = more;
    return lines;
}

void play_free_lines(void *items) { free(block_of(items)); }
