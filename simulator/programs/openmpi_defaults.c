/* Asks Open MPI's component tuned which algorithms it runs by default, for communicators of any size.
 *
 *     openmpi_defaults FILE          each line: COLLECTIVE PROCS BYTES
 *
 * Run by two processes. The first prints for each line the name of the algorithm that an MPI call gets to, without
 * 'ompi_coll_base_'. Instead of the algorithms, whose functions a program can define itself, only their names are
 * recorded, and the communicator's number of processes is set to the one asked for: nothing is sent. Where that number
 * is in memory shows when changing it changes what MPI_Comm_size says. */
#include "timing.h"
#include "work_line.h"
#include "workload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char *ran;

/* Algorithms that do nothing, whatever their arguments. */
#define ALGORITHM(name)                                                                                                \
    int ompi_coll_base_##name(void);                                                                                   \
    int ompi_coll_base_##name(void) {                                                                                  \
        ran = ran == NULL ? #name : ran;                                                                               \
        return MPI_SUCCESS;                                                                                            \
    }

ALGORITHM(allgather_intra_basic_linear)
ALGORITHM(allgather_intra_bruck)
ALGORITHM(allgather_intra_neighborexchange)
ALGORITHM(allgather_intra_recursivedoubling)
ALGORITHM(allgather_intra_ring)
ALGORITHM(allgather_intra_sparbit)
ALGORITHM(allgather_intra_two_procs)
ALGORITHM(allgatherv_intra_basic_default)
ALGORITHM(allgatherv_intra_bruck)
ALGORITHM(allgatherv_intra_neighborexchange)
ALGORITHM(allgatherv_intra_ring)
ALGORITHM(allgatherv_intra_sparbit)
ALGORITHM(allgatherv_intra_two_procs)
ALGORITHM(allreduce_intra_basic_linear)
ALGORITHM(allreduce_intra_nonoverlapping)
ALGORITHM(allreduce_intra_recursivedoubling)
ALGORITHM(allreduce_intra_redscat_allgather)
ALGORITHM(allreduce_intra_ring)
ALGORITHM(allreduce_intra_ring_segmented)
ALGORITHM(alltoall_intra_basic_linear)
ALGORITHM(alltoall_intra_bruck)
ALGORITHM(alltoall_intra_linear_sync)
ALGORITHM(alltoall_intra_pairwise)
ALGORITHM(alltoall_intra_two_procs)
ALGORITHM(alltoallv_intra_basic_linear)
ALGORITHM(alltoallv_intra_pairwise)
ALGORITHM(barrier_intra_basic_linear)
ALGORITHM(barrier_intra_bruck)
ALGORITHM(barrier_intra_doublering)
ALGORITHM(barrier_intra_recursivedoubling)
ALGORITHM(barrier_intra_tree)
ALGORITHM(barrier_intra_two_procs)
ALGORITHM(bcast_intra_basic_linear)
ALGORITHM(bcast_intra_binomial)
ALGORITHM(bcast_intra_bintree)
ALGORITHM(bcast_intra_chain)
ALGORITHM(bcast_intra_knomial)
ALGORITHM(bcast_intra_pipeline)
ALGORITHM(bcast_intra_scatter_allgather)
ALGORITHM(bcast_intra_scatter_allgather_ring)
ALGORITHM(bcast_intra_split_bintree)
ALGORITHM(exscan_intra_linear)
ALGORITHM(exscan_intra_recursivedoubling)
ALGORITHM(gather_intra_basic_linear)
ALGORITHM(gather_intra_binomial)
ALGORITHM(gather_intra_linear_sync)
ALGORITHM(reduce_intra_basic_linear)
ALGORITHM(reduce_intra_binary)
ALGORITHM(reduce_intra_binomial)
ALGORITHM(reduce_intra_chain)
ALGORITHM(reduce_intra_in_order_binary)
ALGORITHM(reduce_intra_pipeline)
ALGORITHM(reduce_intra_redscat_gather)
ALGORITHM(reduce_scatter_block_basic_linear)
ALGORITHM(reduce_scatter_block_intra_butterfly)
ALGORITHM(reduce_scatter_block_intra_recursivedoubling)
ALGORITHM(reduce_scatter_block_intra_recursivehalving)
ALGORITHM(reduce_scatter_intra_basic_recursivehalving)
ALGORITHM(reduce_scatter_intra_butterfly)
ALGORITHM(reduce_scatter_intra_nonoverlapping)
ALGORITHM(reduce_scatter_intra_ring)
ALGORITHM(scan_intra_linear)
ALGORITHM(scan_intra_recursivedoubling)
ALGORITHM(scatter_intra_basic_linear)
ALGORITHM(scatter_intra_binomial)
ALGORITHM(scatter_intra_linear_nb)

/* Far more than the fields before the number of processes. */
enum { LOOKED_AT = 64, NEVER_A_SIZE = 77777 };

/* Where the communicator's number of processes is. */
static int *find_size(MPI_Comm comm) {
    MPI_Group group;
    int procs, seen;
    MPI_Comm_group(comm, &group);
    MPI_Comm_size(comm, &procs);
    int *fields = (int *)(void *)group;
    for (int i = 0; i < LOOKED_AT; i++) {
        if (fields[i] == procs) {
            fields[i] = NEVER_A_SIZE;
            MPI_Comm_size(comm, &seen);
            fields[i] = procs;
            if (seen == NEVER_A_SIZE) {
                return &fields[i];
            }
        }
    }
    return NULL;
}

/* Little memory stands for buffers of any size, which nobody reads or writes. */
static void *a_little(size_t bytes) {
    (void)bytes;
    return malloc(1);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, whole;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &whole);
    int *size = whole == 2 ? find_size(comm) : NULL;
    if (size == NULL) {
        program_fail("openmpi_defaults", "needs", "two processes, and an Open MPI whose communicators can be changed");
    }
    char *text = argc == 2 ? program_read_text(argv[1]) : NULL, *rest = text;
    if (text == NULL) {
        program_fail("openmpi_defaults", "needs", "a file");
    }
    for (work_line fields; rank == 0 && program_work_next(&rest, &fields);) {
        char collective[32];
        program_work_word(&fields, "collective", collective, sizeof collective);
        int procs = (int)program_work_integer(&fields, "procs", 2, INT_MAX);
        size_t bytes = (size_t)program_work_integer(&fields, "bytes", 0, LLONG_MAX);
        program_work_end(&fields);
        collwise_collective kind = program_workload_kind(collective);
        workload work;
        if (kind == COLLWISE_COLLECTIVES) {
            program_work_refuse(&fields, "collective is unknown");
        }
        if (!program_work_is_right(&fields)) {
            printf("%s\n", fields.wrong);
            continue;
        }
        *size = procs;
        if (!program_workload_make(&work, kind, bytes, 0, comm, (workload_memory){a_little, free})) {
            program_fail("openmpi_defaults", "out of", "memory");
        }
        ran = NULL;
        program_workload_call_mpi(work.kind, &work.call, NULL);
        *size = whole;
        printf("%s\n", ran == NULL ? "nothing" : ran);
        program_workload_free(&work);
    }
    free(text);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
