/* Decision tables, and lists of algorithms: from the bytes of a file to the algorithm of a call, as libcollwise goes.
 * The first byte says which of the two the rest is. */
#include "../../algorithms/interpose/settings.c"

#include <assert.h>

static FILE *opened(const uint8_t *data, size_t size) {
    static uint8_t nothing;
    return fmemopen(size > 0 ? (void *)data : &nothing, size > 0 ? size : 1, "r");
}

/* Every row that the table has, at sizes around each power of two. */
static void look_up(const decision_table *table) {
    static const uint64_t counts[] = {1, 2, 3, 16, 1000, INT_MAX};
    for (int kind = 0; kind < COLLWISE_COLLECTIVES; kind++) {
        decision_table_has(table, kind);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            decision_table_asks_nodes(table, kind, counts[i]);
            const decision_row *row = decision_table_row(table, kind, counts[i], counts[i] / 2 + 1);
            for (int bit = 0; row != NULL && bit < 64; bit += 9) {
                const decision_choice *choice = decision_row_choice(row, (1ULL << bit) - 1);
                if (choice != NULL && choice->algorithm != DECISION_DEFAULT) {
                    assert((int)collwise_registry[choice->algorithm].kind == kind);
                }
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    FILE *file = opened(data + 1, size - 1);
    char *text = file == NULL ? NULL : read_whole(file);
    request asked = {0};
    *(data[0] % 2 == 0 ? &asked.table : &asked.algorithms) = text;
    decision_table *table = text == NULL ? NULL : make_table(&asked, 0);
    if (table != NULL) {
        look_up(table);
    }
    decision_table_free(table);
    free(text);
    if (file != NULL) {
        fclose(file);
    }
    return 0;
}
