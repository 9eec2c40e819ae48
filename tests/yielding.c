/* Lets the processes of MPICH over UCX, which poll, leave the processor to others where there is nothing to do. With
 * more processes than processors each would else poll until its time slice ends. Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

typedef unsigned progress_function(void *worker);

unsigned ucp_worker_progress(void *worker) {
    static progress_function *of_ucx;
    if (of_ucx == NULL) {
        *(void **)&of_ucx = dlsym(RTLD_NEXT, "ucp_worker_progress");
        if (of_ucx == NULL) {
            abort();
        }
    }
    unsigned done = of_ucx(worker);
    if (done == 0) {
        sched_yield();
    }
    return done;
}
