/* One MPI_Allgatherv whose blocks have gaps between them, for benchmarks/blocks_with_gaps.py.
 *
 *     blocks_with_gaps char|pairs|adjacent BYTES
 *
 * The elements are chars, vectors of pairs of ints, or four adjacent ints that start above 0. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static MPI_Datatype make(const char *kind) {
    MPI_Datatype type;
    if (strcmp(kind, "char") == 0) {
        MPI_Type_dup(MPI_CHAR, &type);
    } else if (strcmp(kind, "pairs") == 0) {
        MPI_Type_vector(2, 2, 3, MPI_INT, &type);
    } else {
        MPI_Type_indexed(2, (const int[]){2, 2}, (const int[]){4, 6}, MPI_INT, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

int main(int argc, char **argv) {
    int procs, size;
    MPI_Aint low, extent;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Datatype type = make(argc > 2 ? argv[1] : "char");
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &low, &extent);
    int elements = argc > 2 ? atoi(argv[2]) / size : 0, *counts = calloc(2 * (size_t)procs, sizeof *counts);
    for (int i = 0; i < procs; i++) {
        counts[i] = elements;
        counts[procs + i] = i * (elements + 1);
    }
    char *mine = calloc((size_t)elements + 1, (size_t)extent);
    char *all = calloc((size_t)procs * ((size_t)elements + 1) + 1, (size_t)extent);
    MPI_Allgatherv(mine, elements, type, all, counts, counts + procs, type, MPI_COMM_WORLD);
    free(mine);
    free(all);
    free(counts);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
