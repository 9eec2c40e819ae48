/* Prints where every process runs, one line for each: {"rank": 0, "host": "...", "library": "..."}.
 *
 * The library is the first line of MPI_Get_library_version. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = MPI_MAX_PROCESSOR_NAME };

/* Prints text as a JSON string, without control characters, which names do not have. */
static void print_quoted(const char *text) {
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        if ((unsigned char)*text >= ' ') {
            putchar(*text);
        }
    }
    putchar('"');
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, procs, length;
    char host[MOST] = "", library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &procs);
    MPI_Get_processor_name(host, &length);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    char *hosts = rank == 0 ? malloc((size_t)procs * MOST) : NULL;
    if (rank == 0 && hosts == NULL) {
        fputs("whereabouts: out of memory\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Gather(host, MOST, MPI_CHAR, hosts, MOST, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int other = 0; rank == 0 && other < procs; other++) {
        printf("{\"rank\": %d, \"host\": ", other);
        print_quoted(hosts + (size_t)other * MOST);
        printf(", \"library\": ");
        print_quoted(library);
        printf("}\n");
    }
    free(hosts);
    MPI_Finalize();
    return 0;
}
