/* Decides for each call which algorithm runs. The functions that programs call in place of MPI's collectives are
 * generated from the catalogue (generate_wrappers.py); they call interpose_run(). */
#include "fast_path.h"

/* The outcome for one call: an algorithm of ours, or the reason why MPI's own runs. */
typedef struct {
    const collwise_algorithm *algorithm;
    collwise_parameters parameters;
    const char *reason;
    int size_bits;
    uint64_t bytes;
} outcome;

static int bit_length(uint64_t value) { return value == 0 ? 0 : 64 - __builtin_clzll(value); }

static outcome unsized(const char *reason) { return (outcome){.reason = reason, .size_bits = INTERPOSE_NO_SIZE}; }

static outcome mpis_own(const char *reason, uint64_t bytes) {
    return (outcome){.reason = reason, .size_bits = bit_length(bytes), .bytes = bytes};
}

static outcome decide(interpose_state *state, collwise_collective kind, const collwise_call *call) {
    uint64_t bytes;
    if (state != NULL && state->is_inter) {
        return unsized("an intercommunicator");
    }
    if (state == NULL || !interpose_message_bytes(kind, call, state->procs, &bytes)) {
        return unsized("invalid arguments");
    }
    if (state->procs == 1) {
        return mpis_own("one process", bytes);
    }
    const decision_row *row = state->rows[kind];
    const decision_choice *choice = row == NULL ? NULL : decision_row_choice(row, bytes);
    if (choice == NULL || choice->algorithm == DECISION_DEFAULT) {
        return mpis_own(choice == NULL ? "no rule" : "the rule says default", bytes);
    }
    if (!interpose_arguments_are_valid(kind, call, state->procs)) {
        return unsized("invalid arguments");
    }
    const collwise_algorithm *algorithm = &collwise_registry[choice->algorithm];
    const char *objection = collwise_objection(algorithm, call);
    if (objection != NULL) {
        return mpis_own(objection, bytes);
    }
    return (outcome){algorithm, interpose_parameters(choice), NULL, bit_length(bytes), bytes};
}

static void start_clock(interpose_pending *pending, int row) {
    *pending = (interpose_pending){row, row < 0 ? 0 : interpose_seconds()};
}

int interpose_run(collwise_collective kind, const collwise_call *call, interpose_pending *pending, int *status) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    pending->row = -1;
    if (settings == NULL) {
        return 0;
    }
    interpose_state *state = interpose_state_of(settings, call->comm);
    outcome found = decide(state, kind, call);
    if (settings->counting != 0) {
        interpose_row row = {.function = (int)kind,
                             .size_bits = found.size_bits,
                             .is_ours = found.algorithm != NULL,
                             .algorithm = found.algorithm,
                             .with = found.parameters};
        row.outcome = row.is_ours ? found.algorithm->name : found.reason;
        start_clock(pending, interpose_count(settings, row, found.bytes, call->comm, state));
    }
    if (found.algorithm == NULL) {
        return 0;
    }
    *status = interpose_guarded_run(found.algorithm, call, found.parameters, state);
    if (*status == MPI_SUCCESS && settings->counting == 0) {
        interpose_store(found.algorithm, call, found.parameters, state);
    }
    return 1;
}

void interpose_begin(int function, collwise_collective kind, const collwise_call *call, interpose_pending *pending) {
    const interpose_settings *settings = atomic_load_explicit(&interpose_published, memory_order_acquire);
    pending->row = -1;
    if (settings == NULL || settings->counting == 0 || interpose_is_inside()) {
        return;
    }
    interpose_state *state = interpose_find_state(settings, call->comm);
    uint64_t bytes = 0;
    int has_size = kind != COLLWISE_COLLECTIVES && state != NULL && !state->is_inter &&
                   interpose_message_bytes(kind, call, state->procs, &bytes);
    interpose_row row = {.function = function, .size_bits = has_size ? bit_length(bytes) : INTERPOSE_NO_SIZE};
    row.outcome = interpose_functions[function].why;
    start_clock(pending, interpose_count(settings, row, bytes, call->comm, state));
}

void interpose_end(const interpose_pending *pending) {
    interpose_add_seconds(pending->row, interpose_seconds() - pending->start);
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
