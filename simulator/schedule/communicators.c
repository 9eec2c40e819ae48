#include "communicators.h"

#include <stdint.h>
#include <stdlib.h>

/* The request of a member of a communicator. */
typedef struct {
    int colour, key, rank;
} wish;

/* A call of all members. */
typedef struct division {
    struct division *next;
    int number;        /* among the divisions of its communicator */
    int called, asked; /* members that have called, and those that know their part */
    wish *wishes;      /* in the order of calls, then by colour and key */
    int *parts;        /* by rank, when all have called */
    int no_colour;
} division;

typedef struct {
    int rank, process;
} member;

typedef struct {
    int size;
    int *processes;      /* by rank */
    member *by_process;  /* in ascending order of processes */
    int *calls;          /* by rank: divisions that the member has called for; NULL before the first */
    division *divisions; /* that somebody still needs */
} communicator;

struct communicators {
    communicator *items; /* from number 1 on */
    size_t count, room;
};

static void release(communicator *one) {
    while (one->divisions != NULL) {
        division *next = one->divisions->next;
        free(one->divisions->wishes);
        free(one->divisions->parts);
        free(one->divisions);
        one->divisions = next;
    }
    free(one->processes);
    free(one->by_process);
    free(one->calls);
}

static int compare_processes(const void *left, const void *right) {
    int one = ((const member *)left)->process, other = ((const member *)right)->process;
    return (one > other) - (one < other);
}

/* Adds a communicator without members; returns its number, 0 if memory runs out. */
static int add(communicators *to, int size) {
    if (to->count == to->room) {
        size_t room = to->room == 0 ? 4 : 2 * to->room;
        communicator *grown = realloc(to->items, room * sizeof *grown);
        if (grown == NULL) {
            return 0;
        }
        to->items = grown;
        to->room = room;
    }
    communicator *made = &to->items[to->count];
    *made = (communicator){.size = size};
    made->processes = malloc((size_t)size * sizeof *made->processes);
    made->by_process = malloc((size_t)size * sizeof *made->by_process);
    if (made->processes == NULL || made->by_process == NULL) {
        release(made);
        return 0;
    }
    return (int)++to->count;
}

/* When all members are known. */
static void arrange(communicator *one) {
    for (int rank = 0; rank < one->size; rank++) {
        one->by_process[rank] = (member){rank, one->processes[rank]};
    }
    qsort(one->by_process, (size_t)one->size, sizeof *one->by_process, compare_processes);
}

int recording_communicators_add(communicators *to, int size, const int *processes) {
    int number = add(to, size);
    for (int rank = 0; number > 0 && rank < size; rank++) {
        to->items[number - 1].processes[rank] = processes[rank];
    }
    if (number > 0) {
        arrange(&to->items[number - 1]);
    }
    return number;
}

communicators *recording_communicators_make(int procs) {
    communicators *made = calloc(1, sizeof *made);
    if (made == NULL || add(made, procs) == 0) {
        free(made);
        return NULL;
    }
    for (int rank = 0; rank < procs; rank++) {
        made->items[0].processes[rank] = rank;
    }
    arrange(&made->items[0]);
    return made;
}

void recording_communicators_free(communicators *of) {
    if (of == NULL) {
        return;
    }
    for (size_t i = 0; i < of->count; i++) {
        release(&of->items[i]);
    }
    free(of->items);
    free(of);
}

int recording_communicators_size(const communicators *of, int number) {
    return number < 1 || (size_t)number > of->count ? 0 : of->items[number - 1].size;
}

int recording_communicators_member(const communicators *of, int number, int rank) {
    return of->items[number - 1].processes[rank];
}

int recording_communicators_rank(const communicators *of, int number, int process) {
    const communicator *one = &of->items[number - 1];
    member wanted = {.process = process};
    const member *found =
        bsearch(&wanted, one->by_process, (size_t)one->size, sizeof *one->by_process, compare_processes);
    return found == NULL ? -1 : found->rank;
}

/* The division that the member has called for last. */
static division **find(communicator *of, int rank) {
    division **at = &of->divisions;
    while (*at != NULL && (*at)->number != of->calls[rank]) {
        at = &(*at)->next;
    }
    return at;
}

static int compare_wishes(const void *left, const void *right) {
    const wish *one = left, *other = right;
    if (one->colour != other->colour) {
        return one->colour < other->colour ? -1 : 1;
    }
    if (one->key != other->key) {
        return one->key < other->key ? -1 : 1;
    }
    return (one->rank > other->rank) - (one->rank < other->rank);
}

/* Makes the communicators of a division that all have called for. Returns 0 if memory runs out. */
static int make_parts(communicators *of, int number, division *done) {
    int size = of->items[number - 1].size;
    done->parts = calloc((size_t)size, sizeof *done->parts);
    if (done->parts == NULL) {
        return 0;
    }
    qsort(done->wishes, (size_t)size, sizeof *done->wishes, compare_wishes);
    for (int first = 0, end; first < size; first = end) {
        end = first + 1;
        while (end < size && done->wishes[end].colour == done->wishes[first].colour) {
            end++;
        }
        if (done->wishes[first].colour == done->no_colour) {
            continue;
        }
        int part = add(of, end - first);
        if (part == 0) {
            return 0;
        }
        for (int i = first; i < end; i++) {
            int rank = done->wishes[i].rank;
            of->items[part - 1].processes[i - first] = of->items[number - 1].processes[rank];
            done->parts[rank] = part;
        }
        arrange(&of->items[part - 1]);
    }
    return 1;
}

int recording_communicators_divide(communicators *of, int number, int rank, int colour, int no_colour, int key) {
    communicator *one = &of->items[number - 1];
    if (one->calls == NULL && (one->calls = calloc((size_t)one->size, sizeof *one->calls)) == NULL) {
        return 0;
    }
    one->calls[rank]++;
    division **at = find(one, rank);
    if (*at == NULL) {
        division *made = calloc(1, sizeof *made);
        if (made == NULL) {
            return 0;
        }
        *at = made;
        *made = (division){.number = one->calls[rank], .no_colour = no_colour};
        made->wishes = malloc((size_t)one->size * sizeof *made->wishes);
        if (made->wishes == NULL) {
            return 0;
        }
    }
    division *under_way = *at;
    under_way->wishes[under_way->called++] = (wish){colour, key, rank};
    return under_way->called < one->size || make_parts(of, number, under_way);
}

int recording_communicators_part(communicators *of, int number, int rank) {
    communicator *one = &of->items[number - 1];
    division **at = find(one, rank), *found = *at;
    if (found->parts == NULL) {
        return COMMUNICATORS_UNKNOWN;
    }
    int part = found->parts[rank];
    if (++found->asked == one->size) {
        *at = found->next;
        free(found->wishes);
        free(found->parts);
        free(found);
    }
    return part;
}
