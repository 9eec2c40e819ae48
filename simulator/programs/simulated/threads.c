/* Simulated processes have no threads. */
#include "verify.h"

verify_outcome verify_two_threads(const collwise_algorithm *algorithm, MPI_Comm world, char complaint[VERIFY_TEXT]) {
    (void)algorithm;
    (void)world;
    (void)complaint;
    return VERIFY_NOT_APPLICABLE;
}
