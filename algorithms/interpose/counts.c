/* Counts and times the calls of one process, by function, communicator, outcome and message size. */
#include "interpose.h"

#include <stdlib.h>
#include <string.h>

void interpose_counts_make(void) {
    interpose_counts *own = calloc(1, sizeof *own);
    if (own != NULL) {
        pthread_mutex_init(&own->lock, NULL);
        own->start = interpose_seconds();
        interpose_store_counts(own);
    }
}

void interpose_counts_free(void) {
    interpose_counts *own = interpose_own_counts();
    if (own != NULL) {
        interpose_store_counts(NULL);
        pthread_mutex_destroy(&own->lock);
        for (int i = 0; i < own->group_count; i++) {
            free(own->groups[i].ranks);
        }
        free(own->groups);
        free(own->rows);
        free(own->slots);
        free(own);
    }
}

/* --- Communicators ----------------------------------------------------------------------------------------------- */

/* The ranks of the communicator's processes in MPI_COMM_WORLD; NULL if memory runs out. Freed with free(). */
static int *world_ranks(MPI_Comm comm, int *procs) {
    MPI_Group group, world;
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, procs);
    int *own = malloc(2 * (size_t)*procs * sizeof *own), *found = own;
    for (int i = 0; own != NULL && i < *procs; i++) {
        own[*procs + i] = i;
    }
    if (own != NULL) {
        PMPI_Group_translate_ranks(group, *procs, own + *procs, world, found);
    }
    for (int i = 0; own != NULL && i < *procs; i++) {
        found[i] = found[i] == MPI_UNDEFINED ? -1 : found[i];
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return found;
}

/* The FNV-1a hash of the bytes, continued from `hash`. */
static uint64_t hash_of(const void *data, size_t bytes, uint64_t hash) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash;
}

static const uint64_t START_OF_HASH = 0xcbf29ce484222325u;

static void name_of(MPI_Comm comm, char name[MPI_MAX_OBJECT_NAME]) {
    int length = 0;
    memset(name, 0, MPI_MAX_OBJECT_NAME);
    PMPI_Comm_get_name(comm, name, &length);
}

uint64_t interpose_group_id(MPI_Comm comm) {
    char name[MPI_MAX_OBJECT_NAME];
    int procs, *ranks = world_ranks(comm, &procs);
    name_of(comm, name);
    uint64_t hash = hash_of(name, strlen(name), START_OF_HASH);
    hash = ranks == NULL ? hash : hash_of(ranks, (size_t)procs * sizeof *ranks, hash);
    free(ranks);
    return hash == 0 ? 1 : hash;
}

/* A program that makes communicators without end has its later ones counted together, as unknown ones are. */
enum { MAX_GROUPS = 4096 };

/* The index of the communicator in own->groups; negative if memory runs out. */
static int group_index(interpose_counts *own, uint64_t id, MPI_Comm comm) {
    for (int i = own->group_count - 1; i >= 0; i--) {
        if (own->groups[i].id == id) {
            return i;
        }
    }
    if (id != 0 && own->group_count >= MAX_GROUPS) {
        return group_index(own, 0, comm);
    }
    if ((own->group_count & (own->group_count - 1)) == 0) { /* room for twice as many at each power of two */
        size_t room = own->group_count == 0 ? 1 : 2 * (size_t)own->group_count;
        interpose_group *longer = realloc(own->groups, room * sizeof *longer);
        if (longer == NULL) {
            return -1;
        }
        own->groups = longer;
    }
    interpose_group made = {.id = id};
    if (id != 0) {
        made.ranks = world_ranks(comm, &made.procs);
        name_of(comm, made.name);
        if (made.ranks == NULL) {
            return -1;
        }
    }
    own->groups[own->group_count] = made;
    return own->group_count++;
}

/* --- Rows -------------------------------------------------------------------------------------------------------- */

static int is_same(const interpose_row *a, const interpose_row *b) {
    return a->function == b->function && a->group == b->group && a->size_bits == b->size_bits &&
           a->is_ours == b->is_ours && a->outcome == b->outcome && a->with.part_bytes == b->with.part_bytes &&
           a->with.count == b->with.count && a->with.limit_bytes == b->with.limit_bytes;
}

/* The slot of a row: its own, or the empty one that it would take. */
static int *slot_of(const interpose_counts *own, const interpose_row *row) {
    int key[] = {row->function, row->group, row->size_bits};
    uint64_t hash = hash_of(key, sizeof key, hash_of(&row->outcome, sizeof row->outcome, START_OF_HASH));
    for (int i = (int)(hash % (uint64_t)own->slot_count);; i = (i + 1) % own->slot_count) {
        if (own->slots[i] < 0 || is_same(&own->rows[own->slots[i]], row)) {
            return &own->slots[i];
        }
    }
}

/* Doubles the room for rows, of which half of the slots are for; returns 0 if memory runs out. */
static int grow(interpose_counts *own) {
    int slot_count = own->slot_count == 0 ? 64 : 2 * own->slot_count;
    interpose_row *rows = realloc(own->rows, (size_t)slot_count / 2 * sizeof *rows);
    if (rows != NULL) {
        own->rows = rows;
    }
    int *slots = malloc((size_t)slot_count * sizeof *slots);
    if (rows == NULL || slots == NULL) {
        free(slots);
        return 0;
    }
    free(own->slots);
    own->slots = slots;
    own->slot_count = slot_count;
    for (int i = 0; i < slot_count; i++) {
        slots[i] = -1;
    }
    for (int i = 0; i < own->row_count; i++) {
        *slot_of(own, &rows[i]) = i;
    }
    return 1;
}

static int row_index(interpose_counts *own, const interpose_row *row) {
    if (2 * own->row_count >= own->slot_count && !grow(own)) {
        return -1;
    }
    int *slot = slot_of(own, row);
    if (*slot < 0) {
        own->rows[own->row_count] = *row;
        *slot = own->row_count++;
    }
    return *slot;
}

static int is_first_of(MPI_Comm comm) {
    int rank = -1;
    return comm != MPI_COMM_NULL && PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS && rank == 0;
}

int interpose_count(const interpose_settings *settings, interpose_row call, uint64_t bytes, MPI_Comm comm,
                    interpose_state *state) {
    interpose_counts *own = interpose_own_counts();
    if (own == NULL) {
        return -1;
    }
    int index = -1;
    pthread_mutex_lock(&own->lock);
    own->calls++;
    if ((settings->counting & COUNT_FOR_REPORT) != 0) {
        call.group = group_index(own, state == NULL ? 0 : state->group, comm);
        index = call.group < 0 ? -1 : row_index(own, &call);
    }
    if (index >= 0) {
        own->rows[index].calls++;
        own->rows[index].first_calls += state != NULL && is_first_of(comm);
        own->rows[index].bytes += (double)bytes;
    }
    pthread_mutex_unlock(&own->lock);
    return index;
}

void interpose_add_seconds(int row, double seconds) {
    interpose_counts *own = interpose_own_counts();
    if (own != NULL) {
        pthread_mutex_lock(&own->lock);
        own->rows[row].seconds += seconds;
        pthread_mutex_unlock(&own->lock);
    }
}
