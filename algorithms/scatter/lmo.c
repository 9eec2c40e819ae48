/* The LMO model's scatter, down the linear tree of linear.c. From S bytes on, the time of a linear scatter leaps;
 * blocks of that size are scattered in the smallest number n of parts below S:
 *     T(m) = n T_linear(m / n), m / n < S        else T(m) = T_linear(m) */
#include "internal.h"

void collwise_scatter_lmo(const char *all, char *mine, size_t block_bytes, int root, MPI_Comm comm,
                          collwise_parameters with) {
    size_t m = block_bytes, S = with.bound_bytes;
    int is_large = S > 1 && m >= S;
    if (!is_large) {
        collwise_scatter_linear(all, mine, m, root, comm, with);
        return;
    }
    size_t n = collwise_parts_below(m, S);
    for (size_t i = 0; i < n; i++) {
        collwise_scatter_part(all, mine, m, collwise_equal_part(m, n, i), root, comm);
    }
}
