/* Mock-ups of performance guidelines: collectives made of the MPI library's own other collectives (Hunold &
 * Carpen-Amarie 2018, section 3 and appendix A). They call PMPI, so that libcollwise does not see these calls, on the
 * private communicator. What they need besides the user's buffers is in two buffers of each communicator. */
#ifndef COLLWISE_MOCK_UPS_H
#define COLLWISE_MOCK_UPS_H

#include "internal.h"

/* --- Extra memory (mock_up_memory.c) ------------------------------------------------------------------------------ */

/* The buffer for messages, and that for counts and displacements; the same memory in each call. The program is aborted
 * if it is too small, which collwise_objection() rules out. */
char *collwise_message_memory(size_t bytes, MPI_Comm comm);
int *collwise_integer_memory(size_t count, MPI_Comm comm);

/* Makes the buffers of a private communicator, which the first call would otherwise make. */
void collwise_make_buffers(MPI_Comm comm);
/* The sizes of the buffers. */
collwise_memory collwise_max_memory(void);

/* The reasons why a mock-up cannot run a call: it has no room for it. NULL if it can. */
const char *collwise_mock_up_objection(const collwise_algorithm *algorithm, const collwise_call *call);

/* Sets memory to zeros. In sweeps, where data has no values, it does nothing. */
void collwise_clear(char *data, size_t bytes);

/* Memory that is kept for messages. */
typedef struct {
    char *data;
    size_t bytes;
} collwise_buffer;

/* Gives a buffer room for `bytes` bytes if it may have so many: all that it may have at once, or in sweeps, where it
 * has no limit, what is needed. */
void collwise_make_room(collwise_buffer *buffer, size_t bytes, size_t most, MPI_Comm comm);

/* --- Blocks (mock_up_blocks.c) ------------------------------------------------------------------------------------ */

/* Counts and displacements of blocks in rank order, in the buffer for integers. */
typedef struct {
    int *counts, *displacements;
} collwise_counts;

/* Blocks of equal size. */
collwise_counts collwise_equal_counts(size_t block_bytes, MPI_Comm comm);

/* The elements in a chunk: as many as a cache line has, at least one. */
size_t collwise_chunk_elements(size_t element_bytes);
/* Parts of a vector, in elements: chunks are dealt to the processes one after another, the last one may be shorter. */
collwise_counts collwise_chunk_counts(size_t elements, size_t element_bytes, MPI_Comm comm);
/* The largest part that the table of the paper allows for, in bytes. */
size_t collwise_max_chunk_bytes(size_t elements, size_t element_bytes, MPI_Comm comm);
/* Turns counts and displacements of elements into those of bytes. */
void collwise_counts_in_bytes(collwise_counts *parts, size_t element_bytes, MPI_Comm comm);

/* A vector padded to P blocks of equal size, and room for one block, in the buffer for messages. */
typedef struct {
    char *all, *block;
    size_t block_bytes;
    size_t elements, padded_elements, element_bytes;
} collwise_padded;

collwise_padded collwise_padded_of(size_t elements, size_t element_bytes, MPI_Comm comm);
/* Copies the vector. The padding repeats its first element, since an operation may not be defined for others. */
void collwise_pad(const collwise_padded *padded, const char *vector);

/* --- MPI's reductions of packed elements (mock_ups.c) ------------------------------------------------------------- */

/* In place where the operand is the result. The result of a reduction is significant at the root only, and that of an
 * exclusive scan on all but the first process. */
void collwise_mpi_reduce(const char *data, char *result, size_t elements, const collwise_operation *op, int root,
                         MPI_Comm comm);
void collwise_mpi_allreduce(const char *data, char *result, size_t elements, const collwise_operation *op,
                            MPI_Comm comm);
void collwise_mpi_reduce_scatter(const char *data, char *mine, const int *counts, const collwise_operation *op,
                                 MPI_Comm comm);
void collwise_mpi_reduce_scatter_block(const char *data, char *mine, size_t block_elements,
                                       const collwise_operation *op, MPI_Comm comm);
void collwise_mpi_exscan(const char *data, char *result, size_t elements, const collwise_operation *op, MPI_Comm comm);

/* Bit-wise or, which MPI defines for bytes. */
collwise_operation collwise_bitwise_or(MPI_Comm comm);

#endif
