/* Makes and frees what a thread stores. */
#include "thread.h"

#include <stdlib.h>
#include <string.h>

const interpose_thread interpose_empty_thread;
_Thread_local const interpose_thread *interpose_stored = &interpose_empty_thread;

static pthread_key_t key;

/* Other libraries may call MPI when the thread ends, too: they begin anew. */
static void free_thread(void *own) {
    interpose_stored = &interpose_empty_thread;
    free(own);
}

static void make_key(void) { pthread_key_create(&key, free_thread); }

interpose_thread *interpose_make_thread(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    interpose_thread *own = collwise_allocate(sizeof *own, MPI_COMM_WORLD);
    memset(own, 0, sizeof *own);
    pthread_once(&once, make_key);
    pthread_setspecific(key, own);
    interpose_stored = own;
    return own;
}
