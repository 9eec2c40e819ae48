/* Operations of rounds at once, each of which goes on when its messages have arrived. */
#include "tasks.h"

#include <sched.h>
#include <stdlib.h>

static int is_over(const collwise_rounds *of) { return of->open == 0 && of->poll == NULL && of->next == of->count; }

/* Starts rounds until there is something to wait for. */
static void go_on(collwise_rounds *of) {
    while (of->open == 0 && of->poll == NULL && collwise_rounds_next(of)) {
        of->open = of->requests.count;
    }
}

void collwise_rounds_start(collwise_rounds *of) { go_on(of); }

/* The requests of several operations in one list. */
typedef struct {
    MPI_Request *list;
    int count, room;
    collwise_rounds **operations;
} joined_requests;

static int not_over(collwise_rounds **found, collwise_rounds *const *list, int count) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (!is_over(list[i])) {
            found[left++] = list[i];
        }
    }
    return left;
}

static void join(joined_requests *all, int operations, MPI_Comm comm) {
    int count = 0;
    for (int i = 0; i < operations; i++) {
        count += all->operations[i]->requests.count;
    }
    if (count > all->room) {
        free(all->list);
        all->room = 2 * count;
        all->list = collwise_allocate((size_t)all->room * sizeof *all->list, comm);
    }
    all->count = 0;
    for (int i = 0; i < operations; i++) {
        for (int j = 0; j < all->operations[i]->requests.count; j++) {
            all->list[all->count++] = collwise_request_list(&all->operations[i]->requests)[j];
        }
    }
}

/* A request of the joined list is complete. */
static void take(const joined_requests *all, int index) {
    int i = 0;
    for (; index >= all->operations[i]->requests.count; i++) {
        index -= all->operations[i]->requests.count;
    }
    collwise_rounds *of = all->operations[i];
    collwise_request_list(&of->requests)[index] = MPI_REQUEST_NULL;
    of->open--;
    go_on(of);
}

static int polls(collwise_rounds *const *list, int count) {
    int polled = 0;
    for (int i = 0; i < count; i++) {
        if (list[i]->poll != NULL) {
            polled = 1;
            if (list[i]->poll(list[i]->state)) {
                list[i]->poll = NULL;
                go_on(list[i]);
            }
        }
    }
    return polled;
}

/* Completes one request: any that is complete, or, if `waits` is set, the first one to be so. Returns the number of
 * operations that are not over. */
static int complete_one(joined_requests *all, collwise_rounds *const *list, int count, int waits) {
    int operations = not_over(all->operations, list, count), index = MPI_UNDEFINED, found = 0;
    if (operations == 0) {
        return 0;
    }
    join(all, operations, list[0]->requests.comm);
    if (waits) {
        MPI_Waitany(all->count, all->list, &index, MPI_STATUS_IGNORE);
    } else {
        MPI_Testany(all->count, all->list, &index, &found, MPI_STATUS_IGNORE);
    }
    if (index != MPI_UNDEFINED) {
        take(all, index);
    }
    return operations;
}

static joined_requests join_nothing(int count, MPI_Comm comm) {
    return (joined_requests){.operations = collwise_allocate((size_t)count * sizeof(collwise_rounds *), comm)};
}

static void free_joined(joined_requests *all) {
    free(all->list);
    free(all->operations);
}

void collwise_rounds_wait(collwise_rounds *const *list, int count) {
    if (count == 0) {
        return;
    }
    joined_requests all = join_nothing(count, list[0]->requests.comm);
    int left = count;
    while (left > 0) {
        int polled = polls(list, count);
        left = complete_one(&all, list, count, !polled);
        if (polled) {
            sched_yield(); /* those polled for may wait for this processor */
        }
    }
    free_joined(&all);
}
