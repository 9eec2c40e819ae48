/* Memory that algorithms allocate: it is freed with the process that is being recorded, unless that has done so. */
#include "recording.h"

#include <stdlib.h>

void *collwise_allocate(size_t bytes, MPI_Comm comm) {
    allocation *made = recording_checked(malloc(sizeof *made + bytes)), **first = &recording_now->now.allocations;
    (void)comm;
    *made = (allocation){.next = *first, .link = first};
    if (made->next != NULL) {
        made->next->link = &made->next;
    }
    *first = made;
    return made->memory;
}

static allocation *disowned(void *memory) {
    allocation *of = (allocation *)((char *)memory - offsetof(allocation, memory));
    if (of->link != NULL) {
        *of->link = of->next;
    }
    if (of->link != NULL && of->next != NULL) {
        of->next->link = of->link;
    }
    of->link = NULL;
    return of;
}

void recording_disown(void *memory) { disowned(memory); }

void recording_free(void *memory) {
    if (memory != NULL) {
        free(disowned(memory));
    }
}

void recording_free_all(process *of) {
    while (of->allocations != NULL) {
        recording_free(of->allocations->memory);
    }
}

size_t *collwise_sizes(size_t count, MPI_Comm comm) { return collwise_allocate(count * sizeof(size_t), comm); }

void collwise_sizes_free(size_t *sizes) { recording_free(sizes); }
