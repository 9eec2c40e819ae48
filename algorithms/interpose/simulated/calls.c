/* Runs our algorithms. Simulated processes may share a thread, so that no call is stored; errors end the run. */
#include "interpose.h"

int interpose_is_inside(void) { return 0; }

int interpose_guarded_run(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                          interpose_state *state) {
    (void)state;
    collwise_run(algorithm, call, with);
    return MPI_SUCCESS;
}

void interpose_store(const collwise_algorithm *algorithm, const collwise_call *call, collwise_parameters with,
                     interpose_state *state) {
    (void)algorithm;
    (void)call;
    (void)with;
    (void)state;
}

int interpose_repeat(const interpose_repeatable *last, interpose_state *state) {
    return interpose_guarded_run(last->algorithm, &last->call, last->parameters, state);
}
