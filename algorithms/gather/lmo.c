/* Medium blocks, M1 <= m <= M2, whose linear gather overwhelms the root's link, come in the least number n of pieces
 * below M1. The barrier before each piece is essential: without it the pieces pile up as the whole blocks do.
 *     T(m) = n (T_barrier + T_linear(m / n)), m / n < M1        else T(m) = T_linear(m) */
#include "internal.h"

void collwise_gather_lmo(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                         collwise_parameters with) {
    size_t m = block_bytes, M1 = with.segment_bytes, M2 = with.limit_bytes;
    int is_medium = M1 > 1 && M1 <= m && (m <= M2 || M2 == 0);
    if (!is_medium) {
        collwise_gather_linear(mine, all, m, root, comm, with);
        return;
    }
    size_t n = collwise_parts_below(m, M1);
    for (size_t i = 0; i < n; i++) {
        collwise_barrier_bruck(comm, with);
        collwise_gather_part(mine, all, m, collwise_equal_part(m, n, i), root, comm);
    }
}
