/* The communicators of a sequence: duplicates, splits and reordered ones of others. */
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>

static int *ranks_in_world(MPI_Comm comm, int procs) {
    int *ranks = collwise_allocate((size_t)procs * sizeof *ranks, comm);
    int *world = collwise_allocate((size_t)procs * sizeof *world, comm);
    MPI_Group group, all;
    for (int rank = 0; rank < procs; rank++) {
        ranks[rank] = rank;
    }
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(group, procs, ranks, all, world);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    free(ranks);
    return world;
}

verify_family verify_family_of(MPI_Comm comm, const char *name) {
    verify_family made = {.comm = comm};
    MPI_Comm_rank(comm, &made.rank);
    MPI_Comm_size(comm, &made.procs);
    made.world = ranks_in_world(comm, made.procs);
    snprintf(made.name, sizeof made.name, "%s", name);
    return made;
}

void verify_family_free(verify_family *family) {
    if (family->comm != MPI_COMM_WORLD) {
        MPI_Comm_free(&family->comm);
    }
    free(family->world);
}

typedef enum { DUPLICATE, ALL, HALVES, BY_TURNS, ALONE, FORMS } form;
enum { RARELY_ALONE = 10 };
static const char *const form_names[] = {"duplicate", "all", "half", "every other", "alone"};
typedef enum { IN_ORDER, REVERSED, SHUFFLED, ORDERS } order;
static const char *const order_names[] = {"", ", ranks reversed", ", ranks shuffled"};

static MPI_Comm derived(const verify_family *of, form form, order order, uint64_t salt) {
    MPI_Comm made;
    const int colours[FORMS] = {
        [HALVES] = of->rank >= (of->procs + 1) / 2, [BY_TURNS] = of->rank % 2, [ALONE] = of->rank};
    const int keys[ORDERS] = {of->rank, -of->rank, (int)verify_mix((unsigned)salt, of->rank, 0) / 2};
    if (form == DUPLICATE) {
        MPI_Comm_dup(of->comm, &made);
    } else {
        MPI_Comm_split(of->comm, colours[form], keys[order], &made);
    }
    return made;
}

verify_placement verify_family_derive(verify_family *made, const verify_family *of, uint64_t salt,
                                      verify_draws *draws) {
    form form = verify_draw(draws, RARELY_ALONE) == 0 ? ALONE : verify_draw(draws, ALONE);
    order order = verify_draw(draws, ORDERS);
    verify_placement placed = verify_draw(draws, 2 * VERIFY_PLACEMENTS);
    char name[sizeof made->name];
    order = form == DUPLICATE ? IN_ORDER : order;
    placed = placed < VERIFY_PLACEMENTS ? placed : VERIFY_AS_STARTED;
    snprintf(name, sizeof name, "%s of %.20s%s%s", form_names[form], of->name, order_names[order],
             verify_placement_names[placed]);
    *made = verify_family_of(derived(of, form, order, salt), name);
    return placed;
}
