/* How mock-ups cut vectors into blocks: equal ones, with padding, or whole chunks; and what memory they need. */
#include "mock_ups.h"

enum { CHUNK_BYTES = 64 };

collwise_counts collwise_equal_counts(size_t block_bytes, MPI_Comm comm) {
    int procs = collwise_size_of(comm), *memory = collwise_integer_memory(2 * (size_t)procs, comm);
    collwise_counts blocks = {memory, memory + procs};
    for (int i = 0; i < procs; i++) {
        blocks.counts[i] = (int)block_bytes;
        blocks.displacements[i] = i * (int)block_bytes;
    }
    return blocks;
}

size_t collwise_chunk_elements(size_t element_bytes) {
    return element_bytes < CHUNK_BYTES ? CHUNK_BYTES / element_bytes : 1;
}

collwise_counts collwise_chunk_counts(size_t elements, size_t element_bytes, MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm), chunk = collwise_chunk_elements(element_bytes);
    size_t rounds = elements / (chunk * procs), rest = elements % (chunk * procs), next = 0;
    int *memory = collwise_integer_memory(2 * procs, comm);
    collwise_counts parts = {memory, memory + procs};
    for (size_t i = 0; i < procs; i++) {
        size_t last = i * chunk < rest ? collwise_min(rest - i * chunk, chunk) : 0;
        parts.counts[i] = (int)(rounds * chunk + last);
        parts.displacements[i] = (int)next;
        next += rounds * chunk + last;
    }
    return parts;
}

size_t collwise_max_chunk_bytes(size_t elements, size_t element_bytes, MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm), chunk = collwise_chunk_elements(element_bytes);
    return (elements / (chunk * procs) + 1) * chunk * element_bytes;
}

void collwise_counts_in_bytes(collwise_counts *parts, size_t element_bytes, MPI_Comm comm) {
    int procs = collwise_size_of(comm);
    for (int i = 0; i < procs; i++) {
        parts->counts[i] *= (int)element_bytes;
        parts->displacements[i] *= (int)element_bytes;
    }
}

collwise_padded collwise_padded_of(size_t elements, size_t element_bytes, MPI_Comm comm) {
    size_t procs = (size_t)collwise_size_of(comm), block_elements = (elements + procs - 1) / procs;
    size_t block_bytes = block_elements * element_bytes;
    char *memory = collwise_message_memory((procs + 1) * block_bytes, comm);
    return (collwise_padded){.all = memory,
                             .block = memory + procs * block_bytes,
                             .block_bytes = block_bytes,
                             .elements = elements,
                             .padded_elements = procs * block_elements,
                             .element_bytes = element_bytes};
}

void collwise_pad(const collwise_padded *padded, const char *vector) {
    size_t bytes = padded->element_bytes;
    collwise_copy(padded->all, vector, padded->elements * bytes);
    for (size_t i = padded->elements; i < padded->padded_elements; i++) {
        collwise_copy(padded->all + i * bytes, vector, bytes);
    }
}

collwise_memory collwise_extra_memory(const collwise_algorithm *algorithm, size_t message_bytes, size_t element_bytes,
                                      int procs) {
    size_t count = (size_t)procs, chunk = collwise_chunk_elements(element_bytes) * element_bytes;
    /* The paper's n counts the bytes in a process's send buffer. */
    int is_of_all = algorithm->kind == COLLWISE_SCATTER || algorithm->kind == COLLWISE_REDUCE_SCATTER_BLOCK;
    size_t n = message_bytes * (is_of_all ? count : 1), over = n % (count * element_bytes);
    size_t padding = over == 0 ? 0 : count * element_bytes - over;
    return algorithm->extra_memory(n, count, padding, chunk);
}
