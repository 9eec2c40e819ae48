/* Random numbers that every process draws alike. */
#include "verify.h"

/* The finishing steps of splitmix64. */
static uint64_t mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

verify_draws verify_draws_of(uint64_t seed, verify_purpose purpose, uint64_t of) {
    return (verify_draws){mixed(mixed(mixed(seed + 1) + (uint64_t)purpose) + of)};
}

unsigned verify_draw(verify_draws *from, unsigned below) {
    from->state += 0x9E3779B97F4A7C15u;
    return (unsigned)(((mixed(from->state) >> 32) * below) >> 32);
}
