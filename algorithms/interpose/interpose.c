/* Decides for each call which algorithm runs. The functions that programs call in place of MPI's collectives are
 * generated from the catalogue (generate_wrappers.py); they call interpose_run(). */
#include "fast_path.h"

/* The outcome for one call: an algorithm of ours, or the reason why MPI's own runs. */
typedef struct {
    const collwise_algorithm *algorithm;
    collwise_parameters parameters;
    const char *reason;
    int size_bits;
} outcome;

#ifndef SMPI_SHARED_MALLOC

INTERPOSE_THREAD_LOCAL interpose_cached_state interpose_state_cache[INTERPOSE_CACHED_STATES];

const interpose_state *interpose_cache_state(const interpose_settings *settings, MPI_Comm comm,
                                             interpose_cached_state *entry) {
    const interpose_state *state = interpose_find_state(settings, comm);
    if (state != NULL) {
        *entry = (interpose_cached_state){comm, atomic_load(&interpose_generation), state};
    }
    return state;
}

#endif

static int bit_length(uint64_t value) { return value == 0 ? 0 : 64 - __builtin_clzll(value); }

static outcome mpis_own(const char *reason, int size_bits) {
    return (outcome){.reason = reason, .size_bits = size_bits};
}

static outcome decide(const interpose_state *state, collwise_collective kind, const collwise_call *call) {
    uint64_t bytes;
    if (state != NULL && state->is_inter) {
        return mpis_own("an intercommunicator", INTERPOSE_NO_SIZE);
    }
    if (state == NULL || !interpose_message_bytes(kind, call, state->procs, &bytes)) {
        return mpis_own("invalid arguments", INTERPOSE_NO_SIZE);
    }
    if (state->procs == 1) {
        return mpis_own("one process", bit_length(bytes));
    }
    const decision_row *row = state->rows[kind];
    const decision_choice *choice = row == NULL ? NULL : decision_row_choice(row, bytes);
    if (choice == NULL || choice->algorithm == DECISION_DEFAULT) {
        return mpis_own(choice == NULL ? "no rule" : "the rule says default", bit_length(bytes));
    }
    if (!interpose_arguments_are_valid(kind, call, state->procs)) {
        return mpis_own("invalid arguments", INTERPOSE_NO_SIZE);
    }
    const collwise_algorithm *algorithm = &collwise_registry[choice->algorithm];
    const char *objection = collwise_objection(algorithm, call);
    if (objection != NULL) {
        return mpis_own(objection, bit_length(bytes));
    }
    collwise_parameters with = {
        .part_bytes = choice->part_bytes, .count = choice->count, .limit_bytes = choice->limit_bytes};
    return (outcome){algorithm, with, NULL, bit_length(bytes)};
}

int interpose_run(collwise_collective kind, const collwise_call *call) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    if (settings == NULL) {
        return 0;
    }
    outcome found = decide(interpose_state_of(settings, call->comm), kind, call);
    if (settings->counting != 0) {
        const char *name = found.algorithm == NULL ? NULL : found.algorithm->name;
        interpose_count(settings, kind, name, found.reason, found.size_bits, call->comm);
    }
    if (found.algorithm == NULL) {
        return 0;
    }
    collwise_run(found.algorithm, call, found.parameters);
    return 1;
}

static int start_after(int status) {
    if (status == MPI_SUCCESS) {
        interpose_note_init();
        interpose_start();
    }
    return status;
}

int MPI_Init(int *argc, char ***argv) { return start_after(PMPI_Init(argc, argv)); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return start_after(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void) {
    interpose_stop();
    return PMPI_Finalize();
}
