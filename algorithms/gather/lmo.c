/* The LMO model's gather, up the linear tree of linear.c. Blocks of medium size, M1 <= m <= M2, congest the root's link
 * in a linear gather. They are gathered in the smallest number n of parts below M1, each after a barrier, without which
 * the parts would arrive all at once like the whole blocks:
 *     T(m) = n (T_barrier + T_linear(m / n)), m / n < M1        else T(m) = T_linear(m) */
#include "internal.h"

void collwise_gather_lmo(const char *mine, char *all, size_t block_bytes, int root, MPI_Comm comm,
                         collwise_parameters with) {
    size_t m = block_bytes, M1 = with.bound_bytes, M2 = with.limit_bytes;
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
