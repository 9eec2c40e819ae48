/* The files of point-to-point models that the measuring library reads. */
#include "collwise_models.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
    cw_hockney pairs;
    cw_lmo lmo;
    if (cw_hockney_load(&pairs, file) == 0) {
        cw_hockney_prefers_binomial(&pairs, 1, 8192);
    }
    rewind(file);
    if (cw_lmo_load(&lmo, file) == 0) {
        cw_lmo_prefers_binomial(&lmo, 1, 8192);
    }
    cw_hockney_free(&pairs);
    cw_lmo_free(&lmo);
    fclose(file);
    return 0;
}
